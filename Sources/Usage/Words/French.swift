/// The French words contain the no-break spaces of French punctuation, written as `\u{A0}`.
extension ShippedWords {
    static let french: [Sentence: WordForms] = [
        .gentle: WordForms(
            one: "Il te reste {remaining} message ce mois-ci",
            other: "Il te reste {remaining} messages ce mois-ci"
        ),
        .gentleUntil: WordForms(
            one: "Il te reste {remaining} message jusqu’au {date}",
            other: "Il te reste {remaining} messages jusqu’au {date}"
        ),
        .gentleWait: WordForms(
            one: "Il te reste {remaining} message, et d’autres arrivent dans {wait}",
            other: "Il te reste {remaining} messages, et d’autres arrivent dans {wait}"
        ),
        .gentleLifetime: WordForms(
            one: "Il te reste {remaining} message",
            other: "Il te reste {remaining} messages"
        ),
        .prominent: WordForms(
            one: "On arrive au bout\u{A0}: encore {remaining} message jusqu’au {date}",
            other: "On arrive au bout\u{A0}: encore {remaining} messages jusqu’au {date}"
        ),
        .prominentWait: WordForms(
            one: "On arrive au bout\u{A0}: encore {remaining} message, et d’autres arrivent dans {wait}",
            other: "On arrive au bout\u{A0}: encore {remaining} messages, et d’autres arrivent dans {wait}"
        ),
        .prominentUndated: WordForms(
            one: "On arrive au bout\u{A0}: encore {remaining} message",
            other: "On arrive au bout\u{A0}: encore {remaining} messages"
        ),
        .lifetime: "{used} sur {limit} messages utilisés",
        .trial: WordForms(
            one: "Encore {remaining} message d’essai sur {limit}",
            other: "Encore {remaining} messages d’essai sur {limit}"
        ),
        .trialLastDay: WordForms(
            one: "Ton essai se termine le {date}\u{A0}: il te reste {remaining} message sur {limit}.",
            other: "Ton essai se termine le {date}\u{A0}: il te reste {remaining} messages sur {limit}."
        ),
        .exceedsUntil: "Il faut {requested} messages pour ça, et il t’en reste {remaining} jusqu’au {date}.",
        .exceedsWait:
            "Il faut {requested} messages pour ça, et il t’en reste {remaining}. D’autres arrivent dans {wait}.",
        .exceedsUndated: "Il faut {requested} messages pour ça, et il t’en reste {remaining}.",
        .blockedMonthly:
            "On a échangé plein de beaux messages ce mois-ci\u{A0}! On se retrouve le {date}.",
        .blockedMonthlyUndated: "On a échangé plein de beaux messages ce mois-ci\u{A0}!",
        .blockedUntil: "On a échangé plein de beaux messages\u{A0}! On se retrouve le {date}.",
        .blockedWait: "On a échangé plein de beaux messages\u{A0}! On se retrouve dans {wait}.",
        .blockedUndated: "On a échangé plein de beaux messages\u{A0}!",
        .blockedLifetime: WordForms(
            one: "Tu as utilisé ton {limit} message.",
            other: "Tu as utilisé tes {limit} messages."
        ),
        .blockedNoMessages:
            "Ton forfait ne comprend pas de messages pour l’instant. Avec un plus grand, on peut s’écrire.",
        .blockedTrial: "Tu as utilisé tous tes messages d’essai. On continue\u{A0}?",
        .blockedTrialEnded: "Ton essai est terminé. On continue\u{A0}?",
        .blockedNoAccess: "Envie de revenir\u{A0}? Tes messages sont toujours là.",
        .blockedNeverSubscribed: "Envie de commencer\u{A0}? Avec un abonnement, on peut échanger des messages.",
        .blockedEnded: "Ton temps avec {label} s’est terminé le {date}. On continue\u{A0}?",
        .blockedRefunded:
            "Ton abonnement n’est plus actif, alors je dois m’arrêter ici pour l’instant. Tu peux te réabonner quand tu veux.",
        .blockedBillingRetry: "On fait une petite pause, le temps que ton paiement passe. Je reste là.",
        .cancelled: "Ton abonnement reste actif jusqu’au {date}. Tu peux te réabonner quand tu veux.",
        .cancelledTrial: "Ton essai reste actif jusqu’au {date}. Tu peux t’abonner quand tu veux.",
        .billingIssue:
            "Il y a un petit souci avec ton paiement. On va arranger ça. Tu gardes ton accès jusqu’au {date}.",
        .billingIssueUndated: "Il y a un petit souci avec ton paiement. On va arranger ça.",
        .billingRetry:
            "Je n’ai pas pu renouveler ton abonnement. Mets à jour ton moyen de paiement et on reprend aussitôt.",
        .billingIssueSteps:
            "Ouvre les réglages de ton abonnement, vérifie ton moyen de paiement, puis reviens\u{A0}: je serai là.",
        .stateActive: "Actif",
        .stateTrial: "Essai",
        .stateCancelled: "Résilié",
        .stateBillingIssue: "Problème de paiement",
        .stateExpired: "Expiré",
        .stateRefunded: "Remboursé",
        .stateFree: "Gratuit",
        .labelTrial: "{label} — Jour {day} sur {days}",
        .accessibleMonthly: "{used} sur {limit} messages utilisés ce mois-ci",
        .accessibleMonthlyUnlimited: WordForms(
            one: "{used} message utilisé ce mois-ci",
            other: "{used} messages utilisés ce mois-ci"
        ),
        .accessibleUntil: "{used} sur {limit} messages utilisés pour la période jusqu’au {date}",
        .accessibleUntilUnlimited: WordForms(
            one: "{used} message utilisé pour la période jusqu’au {date}",
            other: "{used} messages utilisés pour la période jusqu’au {date}"
        ),
        .accessibleWait: "{used} sur {limit} messages utilisés, la prochaine période commence dans {wait}",
        .accessibleWaitUnlimited: WordForms(
            one: "{used} message utilisé, la prochaine période commence dans {wait}",
            other: "{used} messages utilisés, la prochaine période commence dans {wait}"
        ),
        .accessibleTrial: "{used} sur {limit} messages d’essai utilisés",
        .accessibleLifetime: "{used} sur {limit} messages utilisés",
        .accessibleLifetimeUnlimited: WordForms(
            one: "{used} message utilisé",
            other: "{used} messages utilisés"
        ),
        .accessiblePast: "{used} sur {limit} messages utilisés pour la période {period}",
        .accessiblePastUnlimited: WordForms(
            one: "{used} message utilisé pour la période {period}",
            other: "{used} messages utilisés pour la période {period}"
        ),
        .window: WordForms(
            one: "Il te reste {remaining} message, et d’autres arrivent dans {wait}",
            other: "Il te reste {remaining} messages, et d’autres arrivent dans {wait}"
        ),
        .blockedWindow: "Faisons une petite pause. Je suis de nouveau là pour toi dans {wait}.",
        .unreadable: "Je n’ai pas pu vérifier tes messages à l’instant. Réessayons dans un moment.",
        .uncounted:
            "Je n’ai pas pu vérifier tes messages à l’instant, mais pas de souci\u{A0}: tu peux continuer à écrire.",
        .unlimited: "illimité",
        .date: WordForms(one: "{day}er {month}", other: "{day} {month}"),
        .dateWithYear: "{date} {year}",
        .month1: "janvier",
        .month2: "février",
        .month3: "mars",
        .month4: "avril",
        .month5: "mai",
        .month6: "juin",
        .month7: "juillet",
        .month8: "août",
        .month9: "septembre",
        .month10: "octobre",
        .month11: "novembre",
        .month12: "décembre",
        .days: WordForms(one: "{n} jour", other: "{n} jours"),
        .hours: WordForms(one: "{n} heure", other: "{n} heures"),
        .minutes: WordForms(one: "{n} minute", other: "{n} minutes"),
        .waitJoined: "{larger} et {smaller}",
    ]
}
