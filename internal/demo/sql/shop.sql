-- A shop as an application would keep it. It knows nothing of Bide: its
-- triggers stamp what happens and when, and the audit believes only them.
CREATE SCHEMA shop;

CREATE TYPE shop.order_status AS ENUM ('UNPAID', 'PAID', 'CLOSED');

CREATE TABLE shop.stock (
    sku      integer PRIMARY KEY,
    received integer NOT NULL,
    on_hand  integer NOT NULL CHECK (on_hand >= 0)
);

CREATE TABLE shop.orders (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status   shop.order_status NOT NULL DEFAULT 'UNPAID',
    -- infinity: the shop has withdrawn the deadline, and its task with it.
    deadline timestamptz NOT NULL
);

CREATE TABLE shop.order_lines (
    order_id bigint  NOT NULL REFERENCES shop.orders,
    line_no  integer NOT NULL,
    sku      integer NOT NULL REFERENCES shop.stock,
    quantity integer NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (order_id, line_no)
);

CREATE TABLE shop.payments (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id bigint NOT NULL REFERENCES shop.orders
);
CREATE INDEX ON shop.payments (order_id);

CREATE TABLE shop.order_event (
    order_id bigint            NOT NULL,
    status   shop.order_status NOT NULL,
    -- The statement may work for milliseconds before a row's trigger fires.
    -- "Too early" is judged by its beginning, "too late" by the stamp.
    began    timestamptz NOT NULL DEFAULT statement_timestamp(),
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON shop.order_event (order_id);

CREATE TABLE shop.stock_movement (
    sku   integer     NOT NULL,
    delta integer     NOT NULL,
    at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION shop.record_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shop.order_event (order_id, status) VALUES (NEW.id, NEW.status);
    RETURN NULL;
END $$;

-- Also when the status stays what it was: closing a closed order is a fault
-- that the audit must see.
CREATE TRIGGER record_status AFTER UPDATE OF status ON shop.orders
    FOR EACH ROW EXECUTE FUNCTION shop.record_status();

CREATE FUNCTION shop.record_movement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shop.stock_movement (sku, delta) VALUES (NEW.sku, NEW.on_hand - OLD.on_hand);
    RETURN NULL;
END $$;

CREATE TRIGGER record_movement AFTER UPDATE OF on_hand ON shop.stock
    FOR EACH ROW EXECUTE FUNCTION shop.record_movement();

CREATE FUNCTION shop.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON shop.order_event
    FOR EACH STATEMENT EXECUTE FUNCTION shop.refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON shop.stock_movement
    FOR EACH STATEMENT EXECUTE FUNCTION shop.refuse();

INSERT INTO shop.stock (sku, received, on_hand)
SELECT sku, 1000000, 1000000 FROM generate_series(1, 20) AS sku;
