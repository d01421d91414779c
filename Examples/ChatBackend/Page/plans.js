// What the store sells. Headroom knows which plan each product is; what a plan gives a person reads here before buying.

export const offers = [
    { plan: "paid", name: "Premium", about: "800 messages every month" },
    { plan: "pro", name: "Pro", about: "As many messages as you like" },
];

export function offer(plan) {
    return offers.find((each) => each.plan === plan) ?? null;
}
