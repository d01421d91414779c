// The types of answers, so that callers need not import the module that the library shares with the service.
@_exported import struct LineProtocol.UsageStatus
@_exported import struct LineProtocol.WindowStatus
@_exported import struct Usage.BillingPeriod
@_exported import struct Usage.CivilTimeZone
@_exported import enum Usage.DenialReason
@_exported import enum Usage.Display
@_exported import struct Usage.Instant
@_exported import struct Usage.InvalidMessageKey
@_exported import struct Usage.LanguageTag
@_exported import struct Usage.MessageKey
@_exported import struct Usage.PeriodReport
@_exported import struct Usage.PeriodUsage
@_exported import struct Usage.PlanChange
@_exported import enum Usage.SubscriptionState
@_exported import enum Usage.Tier
@_exported import struct Usage.UserID
@_exported import struct Usage.UserNamespace
