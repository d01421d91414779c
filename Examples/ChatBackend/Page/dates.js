// Instants as a person reads them. In UTC, as all of the service's dates are, so that the sheet says what the banner
// says.

const day = new Intl.DateTimeFormat("en-US", { year: "numeric", month: "long", day: "numeric", timeZone: "UTC" });
const hours = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC" };
const time = new Intl.DateTimeFormat("en-US", hours);

/** "December 1, 2026" */
export function dayWords(instant) {
    return day.format(new Date(instant));
}

/** "December 1, 2026, 00:00 UTC" */
export function instantWords(instant) {
    const date = new Date(instant);
    return `${day.format(date)}, ${time.format(date)} UTC`;
}
