CREATE SEQUENCE ticket_no START 1000 INCREMENT 5;
CREATE TABLE note (
    id int GENERATED ALWAYS AS IDENTITY (START WITH 500),
    ticket int NOT NULL DEFAULT nextval('ticket_no'),
    body text NOT NULL
);
INSERT INTO note (body) VALUES ('first'), ('second');
