/// Live numbers. Everything else on the pages works without scripts.
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
          const listen = () => {
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
            }
          });
        })();

        """
}
