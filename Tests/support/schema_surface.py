"""What a release of the service, applications and operators use of the schema: the statements that the binary has, with the types of
their parameters and results; the functions that others may call; and the columns of tables and views that others may read.

    script/release-surface VERSION     writes that of this working copy to Tests/releases/VERSION.json
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from . import processes, settings
from .postgres import Cluster, psql

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ROOT / "Tests" / "releases"
MARK = "next: "

OPEN_TO_OTHERS = """
select json_build_object(
    'functions', (
        select json_object_agg(call.name, pg_get_function_result(function.oid) order by call.name collate "C")
        from pg_proc as function
        -- A function may get parameters, if these have defaults.
        cross join generate_series((function.pronargs - function.pronargdefaults)::integer, function.pronargs::integer) as given
        cross join lateral (
            select split_part(function.oid::regprocedure::text, '(', 1) || '(' || coalesce((
                select string_agg(format_type(argument.type, null), ',' order by argument.place)
                from unnest(function.proargtypes) with ordinality as argument (type, place)
                where argument.place <= given
            ), '') || ')' as name
        ) as call
        where function.proowner = 'headroom_owner'::regrole and (
            function.pronamespace = 'public'::regnamespace or has_function_privilege('headroom_operator', function.oid, 'execute')
        )
    ),
    'columns', (
        select json_object_agg(name, columns order by name collate "C") from (
            select format('%s.%s', class.relnamespace::regnamespace, class.relname) as name, json_agg(
                format('%s %s', attribute.attname, format_type(attribute.atttypid, attribute.atttypmod)) order by attribute.attnum
            ) as columns
            from pg_attribute as attribute
            join pg_class as class on class.oid = attribute.attrelid and class.relkind in ('r', 'v')
            where attribute.attnum > 0 and not attribute.attisdropped and (
                class.relnamespace = 'public'::regnamespace
                or class.relnamespace = 'headroom'::regnamespace and has_table_privilege('headroom_operator', class.oid, 'select')
            )
            group by class.oid
        ) as relation
    )
)
"""


CITUS = re.compile(r"\b(citus_(?!release)\w+|pg_dist_\w+|run_command_on_workers|get_rebalance_\w+|create extension)\b")
"""In statements of `headroom distribute` and `headroom rebalance`, which can be prepared only where the extension is."""


def statements():
    """The statements of this working copy, by the names of their files."""
    texts = {path.name: path.read_text().strip().rstrip(";") for path in sorted((ROOT / "sql" / "queries").glob("*.sql"))}
    return {name: text for name, text in texts.items() if not CITUS.search(text)}


def described(url, texts):
    """For each statement the types of its parameters and the columns of its result, or the error of preparing it."""
    script = ["set search_path = pg_catalog, pg_temp;"]
    for name, text in texts.items():
        script += [
            f"\\echo {MARK}{name}", f"prepare described as {text}\n;",
            "select 'parameters ' || parameter_types::text from pg_prepared_statements where name = 'described';",
            f"{text}\n\\gdesc", "deallocate described;",
        ]  # fmt: skip
    # It goes on after an error.
    command = [word for word in psql(url) if word not in ("-v", "ON_ERROR_STOP=1")]
    ran = subprocess.run(command, input="\n".join(script), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/")
    found = {}
    for part in ran.stdout.split(MARK)[1:]:
        name, *lines = part.splitlines()
        errors = [line for line in lines if "ERROR:" in line]
        parameters = [line.removeprefix("parameters ") for line in lines if line.startswith("parameters ")]
        columns = [line.replace("|", " ") for line in lines if "|" in line and not line.startswith("parameters ")]
        found[name] = {"error": errors[0]} if errors else {"parameters": parameters[0], "columns": columns}
    return found


def open_to_others(cluster, database):
    return json.loads(cluster.sql(OPEN_TO_OTHERS, database=database))


def newest_release():
    """The newest release of which there is a file, with its content."""
    path = max(RELEASES.glob("*.json"), key=lambda path: [int(number) for number in path.stem.split(".")])
    return path.stem, json.loads(path.read_text())


def main():
    settings.binary, version = sys.argv[1:]
    try:
        cluster = Cluster()
        database = cluster.new_database(is_migrated=True)
        texts = statements()
        kinds = described(cluster.url(database), texts)
        content = {"statements": {name: {"text": texts[name], **kinds[name]} for name in texts}, **open_to_others(cluster, database)}
        RELEASES.mkdir(exist_ok=True)
        path = RELEASES / f"{version}.json"
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        print(path.relative_to(ROOT))
    finally:
        processes.stop_all()


if __name__ == "__main__":
    main()
