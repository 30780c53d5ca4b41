/**
 * A sliding log in PostgreSQL: one row for each user with the times of its grants, and one function that locks, counts
 * and updates it.
 */
import { Pool } from 'pg';
import type { Address } from '../load/load-job.ts';
import { LOAD_RULES, type Limiter } from '../workloads.ts';

export const POSTGRES_USER = 'bench';
export const POSTGRES_DATABASE = 'postgres';

/**
 * The time is the server's, read after locking the row. Free space in each page lets a row be updated within its page.
 */
export const SLIDING_LOG_SQL = `
create table granted (key text primary key, times bigint[] not null) with (fillfactor = 50);
create function allow(asked text, most int, window_millis bigint) returns boolean language plpgsql as $body$
declare
  live bigint[];
  now_millis bigint;
begin
  loop
    select times into live from granted where key = asked for update;
    exit when found;
    insert into granted values (asked, '{}') on conflict do nothing;
  end loop;
  now_millis := (extract(epoch from clock_timestamp()) * 1000)::bigint;
  live := array(select each from unnest(live) each where each > now_millis - window_millis);
  if cardinality(live) >= most then
    return false;
  end if;
  update granted set times = live || now_millis where key = asked;
  return true;
end
$body$;
`;

interface Row {
  readonly allow: boolean;
}

/**
 * Makes the limiter.
 *
 * @param addresses of the primary
 * @param connections most requests at a time
 */
export function postgresLimiter(addresses: readonly Address[], connections: number): Limiter {
  const pool = new Pool({
    ...addresses[0],
    user: POSTGRES_USER,
    database: POSTGRES_DATABASE,
    max: connections,
  });
  // The server may close an idle connection, and the next query opens another. Without a listener the error would end
  // the process.
  pool.on('error', () => undefined);
  return async (user, rule) => {
    const { limit, windowMillis } = LOAD_RULES[rule];
    const values = [user, limit, windowMillis];
    // The name makes each connection prepare the query once.
    const { rows } = await pool.query<Row>({ name: 'allow', text: 'select allow($1, $2, $3)', values });
    return rows[0]?.allow === true;
  };
}
