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
        .gentleLifetime: WordForms(
            one: "Você ainda tem {remaining} mensagem",
            other: "Você ainda tem {remaining} mensagens"
        ),
        .prominent: WordForms(
            one: "Está quase acabando: resta {remaining} mensagem até {date}",
            other: "Está quase acabando: restam {remaining} mensagens até {date}"
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
        .blockedMonthly: "Trocamos muitas mensagens ótimas este mês! Continuamos em {date}.",
        .blockedMonthlyUndated: "Trocamos muitas mensagens ótimas este mês!",
        .blockedUntil: "Trocamos muitas mensagens ótimas! Continuamos em {date}.",
        .blockedUndated: "Trocamos muitas mensagens ótimas!",
        .blockedTrial: "Você já usou suas mensagens de teste. Vamos continuar?",
        .blockedTrialEnded: "Seu período de teste terminou. Vamos continuar?",
        .blockedNoAccess: "Quer voltar? Suas mensagens continuam aqui.",
        .blockedNeverSubscribed: "Vamos começar? Com uma assinatura, podemos trocar mensagens.",
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
