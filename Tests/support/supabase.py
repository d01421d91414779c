"""A database as in a Supabase project, and stand-ins for what reaches it: PostgREST, and supabase-js."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from .postgres import Cluster, SQLError

OWNER = "owner"
"""The login that Supabase calls postgres: no superuser, but it may create roles."""
SETUP = """
create schema auth; grant usage on schema auth to owner, anon, authenticated, service_role;
create function auth.uid() returns uuid language sql stable as $$ select coalesce(
    nullif(current_setting('request.jwt.claim.sub', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid $$;
grant usage on schema public to anon, authenticated, service_role;
alter default privileges for role owner in schema public grant all on tables to anon, authenticated, service_role;
alter default privileges for role owner in schema public grant all on functions to anon, authenticated, service_role;
alter default privileges for role owner in schema public grant all on sequences to anon, authenticated, service_role
"""
"""Also the default grants of everything to the roles of the API."""


def project():
    """A cluster with the roles of Supabase's API, which inherit nothing, and the database `project` of an owner without superuser."""
    cluster = Cluster(has_roles=False)
    administrator = cluster.session("postgres")
    administrator.run(
        "create role owner login createrole createdb bypassrls;"
        "create role anon nologin noinherit; create role authenticated nologin noinherit;"
        "create role service_role nologin noinherit bypassrls; create role authenticator login noinherit;"
        "grant anon, authenticated, service_role to authenticator"
    )
    administrator.run("create database project owner owner")
    administrator.close()
    session = cluster.session("project")
    session.run(SETUP)
    session.close()
    return cluster


def url(cluster):
    """The address of the project's database for its owner."""
    return cluster.url("project").replace("postgres", OWNER)


class API(HTTPServer):
    """Executes a request as PostgREST does: as `authenticator`, with the role and the claims of the request's token."""

    def __init__(self, cluster):
        super().__init__(("127.0.0.1", 0), Request)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.session = cluster.session("project")
        self.session.run("set session authorization authenticator")
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()
        self.session.close()

    def execute(self, role, subject, sql):
        """The JSON that a query returns, or the text of its error."""
        claims = json.dumps({"role": role, **({"sub": subject} if subject else {})})
        self.session.run("begin")
        try:
            self.session.run(f"set local role {role}; set local request.jwt.claims = '{claims}'")
            data = self.session.run(sql)[0][0]
            self.session.run("commit")
            return {"data": json.loads(data) if data else None, "error": None}
        except SQLError as error:
            self.session.run("rollback")
            return {"data": None, "error": {"message": str(error)}}


class Request(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "rpc" in call:
            arguments = ", ".join(f"{name} => '{value}'" for name, value in call["arguments"].items())
            sql = f"select public.{call['rpc']}({arguments})"
        else:
            columns = ", ".join(f'"{name}"' for name in call["columns"].split(","))
            sql = f"select json_agg(found) from (select {columns} from public.{call['table']}) as found"
        answer = self.server.execute(call["role"], call["subject"], sql)
        if "table" in call and answer["data"]:
            rows = answer["data"]
            answer = {"data": rows[0], "error": None} if len(rows) == 1 else {"data": None, "error": {"message": "multiple rows"}}
        answer = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


CLIENT = """
const { URL_OF_THE_API, ROLE, SUBJECT } = process.env;

async function post(call) {
  const body = JSON.stringify({ role: ROLE, subject: SUBJECT, ...call });
  return (await fetch(URL_OF_THE_API, { method: "POST", body })).json();
}

class Query {
  constructor(table) { this.call = { table }; }
  select(columns) { this.call.columns = columns; return this; }
  maybeSingle() { return post(this.call); }
}

class Channel {
  constructor() { this.listeners = []; }
  on(kind, filter, handler) { this.listeners.push({ kind, filter, handler }); return this; }
  subscribe() { return this; }
}

export const supabase = {
  from: (table) => new Query(table),
  rpc: (name, values = {}) => post({ rpc: name, arguments: values }),
  channel: () => new Channel(),
};
"""
"""The parts of supabase-js that the page's programs use, as a module. It sends each request to an `API`."""
