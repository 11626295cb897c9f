-- The table that deploy/handlers.yaml closes orders in. Yours is your own.
CREATE SCHEMA shop;

CREATE TABLE shop.orders (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status text NOT NULL DEFAULT 'UNPAID' CHECK (status IN ('UNPAID', 'PAID', 'CLOSED'))
);
