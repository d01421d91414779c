/// How the pages look. One file, without anything from elsewhere.
///
/// Colours are named by what they are for, once for light and once for dark; text has a contrast of 4.5 to 1 at least,
/// and what is drawn 3 to 1 (WCAG 2.2, 1.4.3 and 1.4.11).
enum Stylesheet {
    static let text = colours + foundation + frame + parts + forms + charts + media

    private static let colours = """
        :root {
          color-scheme: light dark;
          --ground: #f6f5f1; --surface: #ffffff; --raised: #f0eee8; --line: #dcd8ce; --edge: #8a8578;
          --ink: #1d2126; --muted: #575d64; --accent: #1f6a66; --on-accent: #ffffff; --focus: #1b5fc1;
          --silent: #4a8a6a; --gentle: #3d74ba; --prominent: #b26a00; --blocked: #b4302a;
          --silent-text: #2c6248; --gentle-text: #28598f; --prominent-text: #8a5000; --blocked-text: #9c231e;
          --silent-soft: #e6f2ea; --gentle-soft: #e5eef9; --prominent-soft: #fbeed7; --blocked-soft: #fbe6e4;
          --rest: #e7e4dc; --grid: #e5e2d9; --shadow: 0 1px 2px rgb(40 36 28 / 6%), 0 2px 8px rgb(40 36 28 / 5%);
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --ground: #131619; --surface: #1b1f23; --raised: #252a2f; --line: #343a41; --edge: #7b848e;
            --ink: #e9e8e4; --muted: #a6aeb6; --accent: #6fc7c0; --on-accent: #0e1b1b; --focus: #8cb8ff;
            --silent: #6fb994; --gentle: #7fb0ee; --prominent: #e9aa4c; --blocked: #f0837a;
            --silent-text: #9ad8b8; --gentle-text: #a9cbf7; --prominent-text: #f4c67f; --blocked-text: #f8aaa3;
            --silent-soft: #1d3328; --gentle-soft: #1c2e45; --prominent-soft: #3a2b12; --blocked-soft: #43211f;
            --rest: #2b3137; --grid: #2d3339; --shadow: none;
          }
        }

        """

    private static let foundation = """
        *, ::before, ::after { box-sizing: border-box; }
        html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
        body {
          margin: 0; background: var(--ground); color: var(--ink);
          font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
        }
        h1, h2, h3, p, dl, dd, ul, figure, blockquote { margin: 0; padding: 0; }
        h1 { font-size: 1.625rem; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; }
        h2 { font-size: 1.1875rem; line-height: 1.3; font-weight: 650; }
        h3 { font-size: .9375rem; line-height: 1.4; font-weight: 600; }
        a { color: var(--accent); text-underline-offset: .15em; }
        a:hover { text-decoration-thickness: 2px; }
        :focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; border-radius: 4px; }
        main:focus { outline: none; }
        code { font: .9em/1.4 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--raised); padding: .1em .3em; border-radius: 4px; overflow-wrap: anywhere; }
        .hidden { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
        [hidden] { display: none !important; }
        .muted { color: var(--muted); font-weight: 400; }
        .id { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .875em; overflow-wrap: anywhere; font-weight: 400; letter-spacing: -.01em; }
        .page { max-width: 66rem; margin-inline: auto; padding-inline: 1.25rem; }
        .skip { position: absolute; left: 1rem; top: -4rem; z-index: 2; background: var(--surface); color: var(--ink); padding: .5rem 1rem; border-radius: 0 0 8px 8px; }
        .skip:focus { top: 0; }

        """

    private static let frame = """
        .top { background: var(--surface); border-bottom: 1px solid var(--line); }
        .top .page { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1.5rem; min-height: 3.5rem; padding-block: .375rem; }
        .brand { display: inline-flex; align-items: center; gap: .5rem; min-height: 2.5rem; color: var(--ink); font-weight: 700; font-size: 1.0625rem; text-decoration: none; letter-spacing: -.01em; }
        .logo { width: 1.5rem; height: 1.5rem; }
        .logo .shell { fill: var(--accent); opacity: .3; }
        .logo .level { fill: var(--accent); }
        nav ul { display: flex; gap: .25rem; list-style: none; }
        nav a { display: block; padding: .5rem .75rem; border-radius: 8px; color: var(--ink); text-decoration: none; }
        nav a:hover { background: var(--raised); }
        nav a[aria-current] { background: var(--raised); font-weight: 600; }
        .sign-out { display: flex; align-items: center; gap: .75rem; margin-left: auto; font-size: .875rem; color: var(--muted); }
        .sign-out strong { color: var(--ink); overflow-wrap: anywhere; }
        main { padding-block: 1.75rem 1rem; }
        main > section, main > .card, main > .note { margin-top: 2.25rem; }
        .title { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .75rem 1.5rem; }
        .title + form, .title + .card { margin-top: 1.25rem; }
        .heading { display: flex; flex-wrap: wrap; align-items: baseline; gap: .125rem .875rem; margin-bottom: .75rem; }
        .age { color: var(--muted); font-size: .875rem; }
        footer { color: var(--muted); font-size: .8125rem; padding-block: 1.5rem 2.5rem; }

        """

    private static let parts = """
        .card { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow); padding: 1.125rem 1.25rem; }
        .card + .card { margin-top: .875rem; }
        .card > * + * { margin-top: .75rem; }
        .card.narrow { max-width: 36rem; }
        .empty { color: var(--muted); }
        .note { color: var(--muted); font-size: .875rem; }
        .figures { display: grid; grid-template-columns: repeat(3, 1fr); gap: .875rem; margin-bottom: .875rem; }
        .figures.four { grid-template-columns: repeat(4, 1fr); }
        .figure { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow); padding: .875rem 1.25rem 1rem; min-width: 0; container-type: inline-size; }
        .figure dt { color: var(--muted); font-size: .875rem; }
        .figure dd { font-size: min(1.75rem, 15cqi); line-height: 1.25; font-weight: 650; letter-spacing: -.02em; font-variant-numeric: tabular-nums; white-space: nowrap; }
        .four .figure dd { font-size: min(1.375rem, 15cqi); }
        .figure dd.more { color: var(--muted); font-size: .8125rem; line-height: 1.4; font-weight: 400; letter-spacing: 0; margin-top: .125rem; white-space: normal; }
        .figure.blocked dd:not(.more) { color: var(--blocked-text); }
        table { border-collapse: collapse; width: 100%; font-size: .9375rem; }
        th { text-align: left; font-weight: 500; }
        thead th { color: var(--muted); font-size: .8125rem; font-weight: 500; white-space: nowrap; border-bottom: 1px solid var(--line); }
        th, td { padding: .5rem .75rem; vertical-align: baseline; }
        th:first-child, td:first-child { padding-left: 0; }
        th:last-child, td:last-child { padding-right: 0; }
        tbody tr + tr > * { border-top: 1px solid var(--grid); }
        .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
        .compact { font-size: .875rem; }
        .compact th, .compact td { padding-block: .25rem; }
        .list td, .list tbody th { white-space: nowrap; }
        .list .long, .list td.id { white-space: normal; min-width: 12rem; overflow-wrap: anywhere; }
        .scroll { overflow-x: auto; }
        .swatch { display: inline-block; width: .75rem; height: .75rem; border-radius: 3px; margin-right: .5rem; }
        .swatch.silent { background: var(--silent); } .swatch.gentle { background: var(--gentle); }
        .swatch.prominent { background: var(--prominent); } .swatch.blocked { background: var(--blocked); }
        .tier, .state { display: inline-block; padding: .0625rem .5rem; border-radius: 99px; font-size: .8125rem; font-weight: 500; line-height: 1.5; letter-spacing: 0; white-space: nowrap; background: var(--raised); color: var(--ink); }
        .four .figure dd .state { font-size: 1rem; padding: .125rem .75rem; }
        .tier.silent, .state.good { background: var(--silent-soft); color: var(--silent-text); }
        .tier.gentle { background: var(--gentle-soft); color: var(--gentle-text); }
        .tier.prominent, .state.warning { background: var(--prominent-soft); color: var(--prominent-text); }
        .tier.blocked, .state.bad { background: var(--blocked-soft); color: var(--blocked-text); }
        .snapshot { font-size: 1.125rem; }
        .snapshot strong { font-size: 1.75rem; font-weight: 650; letter-spacing: -.02em; font-variant-numeric: tabular-nums; }
        .snapshot .tier, .snapshot .state { margin-right: .375rem; vertical-align: .25em; }
        .card.steps { padding-left: 2.5rem; }
        .steps li + li { margin-top: 1.25rem; }
        .steps li > * + * { margin-top: .375rem; }
        pre { margin: 0; overflow-x: auto; background: var(--raised); border-radius: 8px; padding: .75rem 1rem; }
        pre code { background: none; padding: 0; overflow-wrap: normal; }
        .facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: .75rem 2rem; }
        .narrow .facts { grid-template-columns: 1fr; }
        .facts dt { color: var(--muted); font-size: .8125rem; }
        .facts dd { overflow-wrap: anywhere; }
        .entries { list-style: none; padding-block: .375rem; }
        .entries > li { display: grid; grid-template-columns: 17rem 1fr; gap: .125rem 1.25rem; padding: .625rem 0; margin: 0; }
        .entries > li + li { border-top: 1px solid var(--grid); }
        .entries .when { color: var(--muted); font-size: .9375rem; font-variant-numeric: tabular-nums; }
        .entries div { min-width: 0; overflow-wrap: anywhere; }
        .entries strong { font-weight: 600; }
        .said { border-left: 3px solid var(--accent); padding: .125rem 0 .125rem .875rem; font-size: 1.0625rem; }
        .label-said { border-color: var(--line); color: var(--muted); font-size: .9375rem; }
        .notice { border: 1px solid var(--line); border-left: 4px solid var(--edge); background: var(--surface); border-radius: 8px; padding: .75rem 1rem; margin-top: 1.25rem; }
        .notice.good { border-left-color: var(--silent); background: var(--silent-soft); }
        .notice.warning { border-left-color: var(--prominent); background: var(--prominent-soft); }
        .notice.bad { border-left-color: var(--blocked); background: var(--blocked-soft); }
        .pair { display: grid; grid-template-columns: 1fr 1fr; gap: .875rem; }
        .pair .card + .card { margin-top: 0; }

        """

    private static let forms = """
        label { display: block; font-weight: 500; font-size: .9375rem; }
        input, select, button, .button { font: inherit; color: inherit; border-radius: 8px; min-height: 2.75rem; max-width: 100%; }
        input, select { background: var(--surface); border: 1px solid var(--edge); padding: .5rem .75rem; }
        .field input { width: 100%; margin-top: .375rem; }
        input[aria-invalid] { border: 2px solid var(--blocked); }
        .mistake { color: var(--blocked-text); font-weight: 500; font-size: .9375rem; margin-top: .25rem; }
        button, .button { display: inline-flex; align-items: center; background: var(--surface); border: 1px solid var(--edge); padding: .5rem 1.125rem; font-weight: 550; cursor: pointer; text-decoration: none; color: var(--ink); }
        button:hover, .button:hover { background: var(--raised); }
        .primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
        .primary:hover { background: var(--accent); filter: brightness(1.08); }
        .danger { background: var(--blocked); border-color: var(--blocked); color: var(--on-accent); }
        .danger:hover { background: var(--blocked); filter: brightness(1.08); }
        .quiet { min-height: 2.25rem; padding: .25rem .75rem; font-size: .875rem; }
        .quiet.small { min-height: 1.75rem; padding: 0 .625rem; font-size: .8125rem; margin-left: .375rem; }
        .inline { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem .625rem; }
        .buttons { display: flex; flex-wrap: wrap; gap: .625rem; margin-top: 1.25rem; }
        .question { font-size: 1.0625rem; }

        """

    private static let charts = """
        .chart { display: flex; }
        .chart svg { display: block; flex: none; overflow: visible; }
        .chart .numbers { width: 2.5rem; font-size: 12px; fill: var(--muted); }
        .chart .columns { width: calc(100% - 3rem); margin-left: .5rem; }
        .chart .columns.few { width: min(100% - 3rem, 32rem); }
        .columns .grid { stroke: var(--grid); stroke-width: 1; shape-rendering: crispEdges; }
        .columns .base { stroke: var(--edge); stroke-width: 1; shape-rendering: crispEdges; }
        .columns .touch { fill: transparent; }
        .column .value { fill: var(--accent); }
        .column.unfinished .value { fill: var(--surface); stroke: var(--accent); stroke-width: 2; }
        .column.selected .value { fill: var(--prominent); }
        .column.selected.unfinished .value { fill: var(--surface); stroke: var(--prominent); }
        .column:hover .touch { fill: var(--raised); opacity: .6; }
        .columns .label { font-size: 12px; fill: var(--muted); display: none; }
        .columns .line { fill: none; stroke: var(--accent); stroke-width: 2; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
        .share { display: block; width: 100%; height: 1.5rem; border-radius: 6px; }
        .share .rest { fill: var(--rest); }
        .share .silent { fill: var(--silent); } .share .gentle { fill: var(--gentle); }
        .share .prominent { fill: var(--prominent); } .share .blocked { fill: var(--blocked); }
        .share .held { fill: var(--edge); }
        .share .threshold { stroke: var(--ink); stroke-width: 2; stroke-dasharray: 3 3; vector-effect: non-scaling-stroke; }
        details > summary { cursor: pointer; color: var(--muted); font-size: .875rem; padding: .375rem 0; width: fit-content; border-radius: 4px; }
        details > summary:hover { color: var(--ink); }

        """

    private static let media = """
        @media (max-width: 36.99rem) { .columns .label.at-narrow { display: inline; } }
        @media (min-width: 37rem) and (max-width: 59.99rem) { .columns .label.at-medium { display: inline; } }
        @media (min-width: 60rem) { .columns .label.at-wide { display: inline; } }
        @media (max-width: 44rem) {
          .figures.four { grid-template-columns: 1fr 1fr; }
          .pair { grid-template-columns: 1fr; }
        }
        @media (max-width: 37rem) {
          .page { padding-inline: 1rem; }
          .figures { grid-template-columns: 1fr 1fr; }
          .figures .main { grid-column: 1 / -1; }
          .figure, .card { padding-inline: 1rem; }
          .entries > li { grid-template-columns: 1fr; }
          .entries .when { font-size: .8125rem; }
          .list { font-size: .875rem; }
          .list th, .list td { padding-inline: .4375rem; }
          .list tbody th { white-space: normal; }
          .top-users tbody th { white-space: nowrap; max-width: 7.25rem; overflow: hidden; text-overflow: ellipsis; }
          .sign-out { margin-left: 0; width: 100%; justify-content: space-between; }
          .tiers .muted { display: block; padding-left: 1.25rem; font-size: .8125rem; }
        }
        @media (prefers-reduced-motion: no-preference) {
          a, button, .button { transition: background-color .12s; }
        }
        @media (forced-colors: active) {
          .share rect, .column .value, .swatch { forced-color-adjust: none; }
        }
        @media print {
          :root { --ground: #fff; --shadow: none; }
          .top nav, .sign-out, .skip, form, #live, details:not([open]) { display: none; }
          .card, .figure { break-inside: avoid; }
          .scroll { overflow: visible; }
        }

        """
}
