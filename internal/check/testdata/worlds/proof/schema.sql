CREATE TABLE note (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL, star bool NOT NULL DEFAULT false);
INSERT INTO note (body) VALUES ('milk'), ('bread');
CREATE TABLE parcel (code text PRIMARY KEY, place text NOT NULL);
INSERT INTO parcel SELECT 'PX' || (7919 * g % 9000 + 1000), p FROM unnest(ARRAY['Oslo', 'Bergen', 'Turku', 'Lund', 'Aarhus', 'Tartu']) WITH ORDINALITY AS x(p, g);
