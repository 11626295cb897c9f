-- A shop that knows nothing of Bide. The verdict believes its stamps only.
CREATE SCHEMA shop;

CREATE TYPE shop.order_status AS ENUM ('UNPAID', 'PAID', 'CLOSED');

CREATE TABLE shop.orders (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status   shop.order_status NOT NULL DEFAULT 'UNPAID',
    -- infinity: the shop has withdrawn the deadline.
    deadline timestamptz NOT NULL
);

CREATE TABLE shop.order_event (
    order_id bigint            NOT NULL,
    status   shop.order_status NOT NULL,
    -- A statement over many rows works for a while before a row's trigger
    -- fires. Its beginning says whether it was early, the stamp how late.
    began    timestamptz NOT NULL DEFAULT statement_timestamp(),
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON shop.order_event (order_id);

CREATE FUNCTION shop.record_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shop.order_event (order_id, status) VALUES (NEW.id, NEW.status);
    RETURN NULL;
END $$;

-- Also when the status stays what it was: closing a closed order is a fault.
CREATE TRIGGER record_status AFTER UPDATE OF status ON shop.orders
    FOR EACH ROW EXECUTE FUNCTION shop.record_status();
