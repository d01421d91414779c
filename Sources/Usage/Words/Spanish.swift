extension ShippedWords {
    static let spanish: [Sentence: WordForms] = [
        .gentle: WordForms(
            one: "Te queda {remaining} mensaje este mes",
            other: "Te quedan {remaining} mensajes este mes"
        ),
        .gentleUntil: WordForms(
            one: "Te queda {remaining} mensaje hasta el {date}",
            other: "Te quedan {remaining} mensajes hasta el {date}"
        ),
        .gentleWait: WordForms(
            one: "Te queda {remaining} mensaje; en {wait} tendrás más",
            other: "Te quedan {remaining} mensajes; en {wait} tendrás más"
        ),
        .gentleLifetime: WordForms(
            one: "Te queda {remaining} mensaje",
            other: "Te quedan {remaining} mensajes"
        ),
        .prominent: WordForms(
            one: "Ya van quedando pocos: {remaining} mensaje hasta el {date}",
            other: "Ya van quedando pocos: {remaining} mensajes hasta el {date}"
        ),
        .prominentWait: WordForms(
            one: "Ya van quedando pocos: {remaining} mensaje; en {wait} tendrás más",
            other: "Ya van quedando pocos: {remaining} mensajes; en {wait} tendrás más"
        ),
        .prominentUndated: WordForms(
            one: "Ya van quedando pocos: {remaining} mensaje",
            other: "Ya van quedando pocos: {remaining} mensajes"
        ),
        .lifetime: "{used} de {limit} mensajes usados",
        .trial: WordForms(
            one: "Te queda {remaining} de {limit} mensajes de prueba",
            other: "Te quedan {remaining} de {limit} mensajes de prueba"
        ),
        .trialLastDay: WordForms(
            one: "Tu prueba termina el {date}: te queda {remaining} de {limit} mensajes.",
            other: "Tu prueba termina el {date}: te quedan {remaining} de {limit} mensajes."
        ),
        .exceedsUntil: WordForms(
            one: "Para eso hacen falta {requested} mensajes, y hasta el {date} te queda {remaining}.",
            other: "Para eso hacen falta {requested} mensajes, y hasta el {date} te quedan {remaining}."
        ),
        .exceedsWait: WordForms(
            one: "Para eso hacen falta {requested} mensajes, y te queda {remaining}; en {wait} tendrás más.",
            other: "Para eso hacen falta {requested} mensajes, y te quedan {remaining}; en {wait} tendrás más."
        ),
        .exceedsUndated: WordForms(
            one: "Para eso hacen falta {requested} mensajes, y te queda {remaining}.",
            other: "Para eso hacen falta {requested} mensajes, y te quedan {remaining}."
        ),
        .blockedMonthly: "¡Este mes hemos compartido muchos mensajes estupendos! Seguimos el {date}.",
        .blockedMonthlyUndated: "¡Este mes hemos compartido muchos mensajes estupendos!",
        .blockedUntil: "¡Hemos compartido muchos mensajes estupendos! Seguimos el {date}.",
        .blockedWait: "¡Hemos compartido muchos mensajes estupendos! Seguimos en {wait}.",
        .blockedUndated: "¡Hemos compartido muchos mensajes estupendos!",
        .blockedLifetime: WordForms(
            one: "Ya has usado tu {limit} mensaje.",
            other: "Ya has usado tus {limit} mensajes."
        ),
        .blockedNoMessages: "Tu plan no incluye mensajes por ahora. Con uno más amplio podemos escribirnos.",
        .blockedTrial: "Ya has usado tus mensajes de prueba. ¿Seguimos?",
        .blockedTrialEnded: "Tu prueba ha terminado. ¿Seguimos?",
        .blockedNoAccess: "¿Te apetece volver? Tus mensajes siguen aquí.",
        .blockedNeverSubscribed: "¿Empezamos? Con una suscripción podemos intercambiar mensajes.",
        .blockedEnded: "Tu tiempo con {label} terminó el {date}. ¿Seguimos?",
        .blockedRefunded:
            "Tu suscripción ya no está activa, así que por ahora tengo que parar aquí. Puedes volver a suscribirte cuando quieras.",
        .blockedBillingRetry: "Hacemos una pequeña pausa hasta que se complete tu pago. Aquí estaré.",
        .cancelled: "Tu suscripción sigue activa hasta el {date}. Puedes volver a suscribirte cuando quieras.",
        .cancelledTrial: "Tu prueba sigue activa hasta el {date}. Puedes suscribirte cuando quieras.",
        .billingIssue:
            "Hay un pequeño problema con tu pago. Vamos a resolverlo. Mantienes el acceso hasta el {date}.",
        .billingIssueUndated: "Hay un pequeño problema con tu pago. Vamos a resolverlo.",
        .billingRetry: "No he podido renovar tu suscripción. Actualiza tu método de pago y seguimos enseguida.",
        .billingIssueSteps:
            "Abre los ajustes de tu suscripción, revisa el método de pago y vuelve: aquí estaré.",
        .stateActive: "Activa",
        .stateTrial: "Prueba",
        .stateCancelled: "Cancelada",
        .stateBillingIssue: "Problema de pago",
        .stateExpired: "Caducada",
        .stateRefunded: "Reembolsada",
        .stateFree: "Gratis",
        .labelTrial: "{label} — Día {day} de {days}",
        .accessibleMonthly: "{used} de {limit} mensajes usados este mes",
        .accessibleMonthlyUnlimited: WordForms(
            one: "{used} mensaje usado este mes",
            other: "{used} mensajes usados este mes"
        ),
        .accessibleUntil: "{used} de {limit} mensajes usados en el periodo hasta el {date}",
        .accessibleUntilUnlimited: WordForms(
            one: "{used} mensaje usado en el periodo hasta el {date}",
            other: "{used} mensajes usados en el periodo hasta el {date}"
        ),
        .accessibleWait: "{used} de {limit} mensajes usados; el próximo periodo empieza en {wait}",
        .accessibleWaitUnlimited: WordForms(
            one: "{used} mensaje usado; el próximo periodo empieza en {wait}",
            other: "{used} mensajes usados; el próximo periodo empieza en {wait}"
        ),
        .accessibleTrial: "{used} de {limit} mensajes de prueba usados",
        .accessibleLifetime: "{used} de {limit} mensajes usados",
        .accessibleLifetimeUnlimited: WordForms(one: "{used} mensaje usado", other: "{used} mensajes usados"),
        .accessiblePast: "{used} de {limit} mensajes usados en {period}",
        .accessiblePastUnlimited: WordForms(
            one: "{used} mensaje usado en {period}",
            other: "{used} mensajes usados en {period}"
        ),
        .window: WordForms(
            one: "Te queda {remaining} mensaje; en {wait} tendrás más",
            other: "Te quedan {remaining} mensajes; en {wait} tendrás más"
        ),
        .blockedWindow: "Hagamos una pequeña pausa. Vuelvo a estar aquí para ti en {wait}.",
        .unreadable:
            "Ahora mismo no he podido consultar cuántos mensajes te quedan. Probemos otra vez en un momento.",
        .uncounted:
            "Ahora mismo no he podido consultar cuántos mensajes te quedan, pero no te preocupes: puedes seguir escribiendo.",
        .unlimited: "ilimitados",
        .date: "{day} de {month}",
        .dateWithYear: "{date} de {year}",
        .month1: "enero",
        .month2: "febrero",
        .month3: "marzo",
        .month4: "abril",
        .month5: "mayo",
        .month6: "junio",
        .month7: "julio",
        .month8: "agosto",
        .month9: "septiembre",
        .month10: "octubre",
        .month11: "noviembre",
        .month12: "diciembre",
        .days: WordForms(one: "{n} día", other: "{n} días"),
        .hours: WordForms(one: "{n} hora", other: "{n} horas"),
        .minutes: WordForms(one: "{n} minuto", other: "{n} minutos"),
        .waitJoined: "{larger} y {smaller}",
    ]
}
