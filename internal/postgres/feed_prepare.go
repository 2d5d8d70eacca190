package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// feedName names the publication, the replication slot and the event trigger of the feed.
const feedName = "pommel"

// keepIdentity makes tables that are created later fit for the feed. It runs with the
// rights of whoever creates the table.
const keepIdentity = `
CREATE FUNCTION pommel.keep_identity() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE r record;
BEGIN
	FOR r IN SELECT c.oid::regclass AS name, c.relpersistence, c.relkind
		FROM pg_event_trigger_ddl_commands() d JOIN pg_class c ON c.oid = d.objid
		WHERE d.classid = 'pg_class'::regclass AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
	LOOP
		IF r.relpersistence = 'u' AND r.relkind = 'r' THEN
			EXECUTE format('ALTER TABLE %s SET LOGGED', r.name);
		END IF;
		EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', r.name);
	END LOOP;
END $$`

// tablesOfUsers lists ordinary and partitioned tables outside the catalogs.
const tablesOfUsers = `
SELECT c.oid::regclass::text, c.relpersistence = 'u' AND c.relkind = 'r'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%'
ORDER BY 1`

// PrepareJudge makes a database ready for the row-change feed: every table logs whole old
// rows, a publication names all tables, and a logical replication slot keeps the place of
// the reader. It is called once, as a superuser, when a database is made; copies of the
// stopped cluster carry the slot with them. Nothing of it runs inside the application's
// transactions, except when it creates a table.
func PrepareJudge(ctx context.Context, super *pgx.Conn) error {
	if err := prepareTables(ctx, super); err != nil {
		return fmt.Errorf("prepare the row-change feed: %w", err)
	}
	err := execAll(ctx, super,
		"CREATE SCHEMA pommel", keepIdentity,
		"CREATE EVENT TRIGGER pommel ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') EXECUTE FUNCTION pommel.keep_identity()",
		"CREATE PUBLICATION pommel FOR ALL TABLES WITH (publish_via_partition_root = true)",
		// The slot's start needs the record of a checkpoint, which is then near.
		"CHECKPOINT",
		"SELECT pg_create_logical_replication_slot('"+feedName+"', 'pgoutput')")
	if err != nil {
		return fmt.Errorf("prepare the row-change feed: %w", err)
	}
	return nil
}

func prepareTables(ctx context.Context, super *pgx.Conn) error {
	rows, err := super.Query(ctx, tablesOfUsers)
	if err != nil {
		return err
	}
	type table struct {
		Name     string
		Unlogged bool
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	if err != nil {
		return err
	}
	for _, t := range tables {
		if t.Unlogged {
			// Rows of unlogged tables never reach the log that the feed reads.
			if err := execAll(ctx, super, "ALTER TABLE "+t.Name+" SET LOGGED"); err != nil {
				return err
			}
		}
		if err := execAll(ctx, super, "ALTER TABLE "+t.Name+" REPLICA IDENTITY FULL"); err != nil {
			return err
		}
	}
	return nil
}
