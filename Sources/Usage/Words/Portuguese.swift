extension ShippedWords {
    static let portuguese: [Sentence: WordForms] = [
        .gentle: WordForms(
            one: "Você ainda tem {remaining} mensagem este mês",
            other: "Você ainda tem {remaining} mensagens este mês"
        ),
        .gentleUntil: WordForms(
            one: "Você ainda tem {remaining} mensagem até {date}",
            other: "Você ainda tem {remaining} mensagens até {date}"
        ),
        .gentleWait: WordForms(
            one: "Você ainda tem {remaining} mensagem; daqui a {wait} chegam mais",
            other: "Você ainda tem {remaining} mensagens; daqui a {wait} chegam mais"
        ),
        .gentleLifetime: WordForms(
            one: "Você ainda tem {remaining} mensagem",
            other: "Você ainda tem {remaining} mensagens"
        ),
        .prominent: WordForms(
            one: "Está quase acabando: resta {remaining} mensagem até {date}",
            other: "Está quase acabando: restam {remaining} mensagens até {date}"
        ),
        .prominentWait: WordForms(
            one: "Está quase acabando: resta {remaining} mensagem; daqui a {wait} chegam mais",
            other: "Está quase acabando: restam {remaining} mensagens; daqui a {wait} chegam mais"
        ),
        .prominentUndated: WordForms(
            one: "Está quase acabando: resta {remaining} mensagem",
            other: "Está quase acabando: restam {remaining} mensagens"
        ),
        .lifetime: "{used} de {limit} mensagens usadas",
        .trial: WordForms(
            one: "Resta {remaining} de {limit} mensagens de teste",
            other: "Restam {remaining} de {limit} mensagens de teste"
        ),
        .trialLastDay: WordForms(
            one: "Seu período de teste termina em {date}: resta {remaining} de {limit} mensagens.",
            other: "Seu período de teste termina em {date}: restam {remaining} de {limit} mensagens."
        ),
        .exceedsUntil: WordForms(
            one: "Para isso são necessárias {requested} mensagens, e resta {remaining} até {date}.",
            other: "Para isso são necessárias {requested} mensagens, e restam {remaining} até {date}."
        ),
        .exceedsWait: WordForms(
            one: "Para isso são necessárias {requested} mensagens, e resta {remaining}; daqui a {wait} chegam mais.",
            other: "Para isso são necessárias {requested} mensagens, e restam {remaining}; daqui a {wait} chegam mais."
        ),
        .exceedsUndated: WordForms(
            one: "Para isso são necessárias {requested} mensagens, e resta {remaining}.",
            other: "Para isso são necessárias {requested} mensagens, e restam {remaining}."
        ),
        .blockedMonthly: "Trocamos muitas mensagens ótimas este mês! Continuamos em {date}.",
        .blockedMonthlyUndated: "Trocamos muitas mensagens ótimas este mês!",
        .blockedUntil: "Trocamos muitas mensagens ótimas! Continuamos em {date}.",
        .blockedWait: "Trocamos muitas mensagens ótimas! Continuamos daqui a {wait}.",
        .blockedUndated: "Trocamos muitas mensagens ótimas!",
        .blockedLifetime: WordForms(
            one: "Você já usou sua {limit} mensagem.",
            other: "Você já usou suas {limit} mensagens."
        ),
        .blockedNoMessages: "Seu plano não inclui mensagens no momento. Com um plano maior, podemos trocar mensagens.",
        .blockedTrial: "Você já usou suas mensagens de teste. Vamos continuar?",
        .blockedTrialEnded: "Seu período de teste terminou. Vamos continuar?",
        .blockedNoAccess: "Quer voltar? Suas mensagens continuam aqui.",
        .blockedNeverSubscribed: "Vamos começar? Com uma assinatura, podemos trocar mensagens.",
        .blockedEnded: "Seu tempo com {label} terminou em {date}. Vamos continuar?",
        .blockedRefunded:
            "Sua assinatura não está mais ativa, então preciso parar por aqui por enquanto. Você pode assinar de novo quando quiser.",
        .blockedBillingRetry: "Vamos fazer uma pequena pausa até o seu pagamento ser aprovado. Vou estar aqui.",
        .cancelled: "Sua assinatura continua ativa até {date}. Você pode assinar de novo quando quiser.",
        .cancelledTrial: "Seu período de teste continua ativo até {date}. Você pode assinar quando quiser.",
        .billingIssue:
            "Houve um probleminha com o seu pagamento. Vamos resolver isso. Seu acesso continua até {date}.",
        .billingIssueUndated: "Houve um probleminha com o seu pagamento. Vamos resolver isso.",
        .billingRetry:
            "Não consegui renovar sua assinatura. Atualize a forma de pagamento e continuamos na hora.",
        .billingIssueSteps:
            "Abra as configurações da assinatura, confira a forma de pagamento e volte: vou estar aqui.",
        .stateActive: "Ativa",
        .stateTrial: "Teste",
        .stateCancelled: "Cancelada",
        .stateBillingIssue: "Problema de pagamento",
        .stateExpired: "Expirada",
        .stateRefunded: "Reembolsada",
        .stateFree: "Grátis",
        .labelTrial: "{label} — Dia {day} de {days}",
        .accessibleMonthly: "{used} de {limit} mensagens usadas este mês",
        .accessibleMonthlyUnlimited: WordForms(
            one: "{used} mensagem usada este mês",
            other: "{used} mensagens usadas este mês"
        ),
        .accessibleUntil: "{used} de {limit} mensagens usadas no período até {date}",
        .accessibleUntilUnlimited: WordForms(
            one: "{used} mensagem usada no período até {date}",
            other: "{used} mensagens usadas no período até {date}"
        ),
        .accessibleWait: "{used} de {limit} mensagens usadas; o próximo período começa daqui a {wait}",
        .accessibleWaitUnlimited: WordForms(
            one: "{used} mensagem usada; o próximo período começa daqui a {wait}",
            other: "{used} mensagens usadas; o próximo período começa daqui a {wait}"
        ),
        .accessibleTrial: "{used} de {limit} mensagens de teste usadas",
        .accessibleLifetime: "{used} de {limit} mensagens usadas",
        .accessibleLifetimeUnlimited: WordForms(one: "{used} mensagem usada", other: "{used} mensagens usadas"),
        .accessiblePast: "{used} de {limit} mensagens usadas em {period}",
        .accessiblePastUnlimited: WordForms(
            one: "{used} mensagem usada em {period}",
            other: "{used} mensagens usadas em {period}"
        ),
        .window: WordForms(
            one: "Você ainda tem {remaining} mensagem; daqui a {wait} chegam mais",
            other: "Você ainda tem {remaining} mensagens; daqui a {wait} chegam mais"
        ),
        .blockedWindow: "Vamos fazer uma pequena pausa. Daqui a {wait} estou aqui de novo para você.",
        .unreadable: "Não consegui verificar suas mensagens agora. Vamos tentar de novo daqui a pouco.",
        .uncounted:
            "Não consegui verificar suas mensagens agora, mas não se preocupe: você pode continuar escrevendo.",
        .unlimited: "ilimitadas",
        .date: WordForms(one: "{day}º de {month}", other: "{day} de {month}"),
        .dateWithYear: "{date} de {year}",
        .month1: "janeiro",
        .month2: "fevereiro",
        .month3: "março",
        .month4: "abril",
        .month5: "maio",
        .month6: "junho",
        .month7: "julho",
        .month8: "agosto",
        .month9: "setembro",
        .month10: "outubro",
        .month11: "novembro",
        .month12: "dezembro",
        .days: WordForms(one: "{n} dia", other: "{n} dias"),
        .hours: WordForms(one: "{n} hora", other: "{n} horas"),
        .minutes: WordForms(one: "{n} minuto", other: "{n} minutos"),
        .waitJoined: "{larger} e {smaller}",
    ]
}
