/// Live numbers, and an overview that follows its figures. Everything else on the pages works without scripts.
enum Script {
    static let text = """
        "use strict";
        (() => {
          const section = document.getElementById("live");
          if (!section || !("EventSource" in window)) return;
          const part = (name) => document.getElementById("live-" + name);
          const show = (name, text) => { if (part(name).textContent !== text) part(name).textContent = text; };
          const seconds = 60, width = 600, base = 66, height = 52;
          let rates = [], source = null, told = 0, database = null;

          // A screen reader hears of it when the database's state changes, and else once in half a minute.
          const tell = (now) => {
            const at = Date.now();
            if (database !== null && now.database === database && at - told < 30000) return;
            if (database !== null) show("words", now.sentence);
            database = now.database;
            told = at;
          };
          const draw = () => {
            const top = Math.max(1, ...rates);
            show("top", top < 10 ? top.toFixed(1) : Math.round(top).toLocaleString("en"));
            const points = rates.map((rate, index) =>
              (width - (rates.length - 1 - index) * width / (seconds - 1)).toFixed(1) + "," + (base - height * rate / top).toFixed(1));
            part("line").setAttribute("points", points.join(" "));
          };
          // Figures that are read from the database stand in the page, so it is fetched again, and what differs is put in.
          const shown = new Map();
          for (const each of document.querySelectorAll("[data-part]")) shown.set(each.dataset.part, each.outerHTML);
          let timer = null, fetching = null;
          const isInUse = (each) => {
            const selection = getSelection();
            return each.contains(document.activeElement) || (selection.type === "Range" && selection.containsNode(each, true));
          };
          const put = (fresh) => {
            const old = document.querySelector(`[data-part="${fresh.dataset.part}"]`);
            const text = fresh.outerHTML;
            if (!old || shown.get(fresh.dataset.part) === text || isInUse(old)) return;
            shown.set(fresh.dataset.part, text);
            const all = (within, selector) => [...within.querySelectorAll(selector)];
            const isOpen = all(old, "details").map((each) => each.open);
            const scrolled = all(old, ".scroll").map((each) => each.scrollLeft);
            old.replaceWith(fresh);
            all(fresh, "details").forEach((each, index) => { each.open = isOpen[index] || false; });
            all(fresh, ".scroll").forEach((each, index) => { each.scrollLeft = scrolled[index] || 0; });
          };
          const refresh = async () => {
            fetching = new AbortController();
            const { signal } = fetching;
            try {
              const answer = await fetch(location.href, { cache: "no-store", signal });
              // To the page to sign in: this one stays as it is.
              if (answer.redirected) return;
              const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
              for (const each of fresh.querySelectorAll("[data-part]")) put(each);
            } catch {
              // The live numbers say that there is no connection.
              if (signal.aborted) return;
            }
            refreshLater();
          };
          const refreshLater = () => {
            clearTimeout(timer);
            timer = setTimeout(refresh, 1000 * document.querySelector("[data-refresh]").dataset.refresh);
          };
          const listen = () => {
            refreshLater();
            source = new EventSource(section.dataset.source);
            source.addEventListener("figures", (event) => {
              const now = JSON.parse(event.data);
              show("rate", now.rate);
              show("p99", now.p99);
              show("queue", now.queue);
              show("database", now.database);
              part("database").className = "state " + now.state;
              show("state", "Live, every second.");
              rates = rates.concat(now.number).slice(-seconds);
              draw();
              part("chart").hidden = rates.length < 3;
              tell(now);
            });
            source.addEventListener("end", (event) => {
              stop();
              show("state", JSON.parse(event.data).text);
              part("pause").hidden = true;
            });
            source.onerror = () => {
              if (source && source.readyState === EventSource.CLOSED) {
                stop();
                show("state", "The live numbers ended. Reload the page to sign in again or to go on.");
                part("pause").hidden = true;
              } else {
                show("state", "No connection; trying again.");
              }
            };
          };
          const stop = () => {
            clearTimeout(timer);
            if (fetching) fetching.abort();
            if (source) source.close();
            source = null;
          };
          part("pause").addEventListener("click", () => {
            if (source) {
              stop();
              show("state", "Paused.");
              show("pause", "Go on");
            } else {
              rates = [];
              show("pause", "Pause");
              listen();
              refresh();
            }
          });
          part("pause").hidden = false;
          listen();
          // A hidden page needs no numbers, and costs the service none.
          let wasLive = true;
          document.addEventListener("visibilitychange", () => {
            if (document.hidden) {
              wasLive = source !== null;
              stop();
            } else if (wasLive && !source && !part("pause").hidden) {
              listen();
              refresh();
            }
          });
        })();

        """
}
