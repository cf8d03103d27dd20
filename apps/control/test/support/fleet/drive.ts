import type { FleetSandbox } from './tally.ts'
import { lastMoveOf, type Visit } from './visits.ts'

/** An external event of a sandbox. */
export interface FleetEvent {
  readonly atMs: number
  readonly kind: 'attach' | 'join'
}

/** All events of a sandbox in order: its visits, and the reconnect of its open tabs `backMs` after each deployment. */
export function eventsOf(
  visits: readonly Visit[],
  disconnects: readonly { readonly atMs: number; readonly backMs: number }[],
): readonly FleetEvent[] {
  const attaches = visits.map(({ fromMs }) => ({ atMs: fromMs, kind: 'attach' as const }))
  const joins = disconnects.flatMap(({ atMs, backMs }) =>
    visits
      .filter(({ fromMs, openUntilMs }) => fromMs < atMs && atMs < openUntilMs)
      .map(() => ({ atMs: atMs + backMs, kind: 'join' as const })),
  )
  return [...attaches, ...joins].sort((a, b) => a.atMs - b.atMs)
}

/** Runs all events and alarms in order. Yields the time after each. */
export function* drive(
  sandbox: FleetSandbox,
  { visits, events, untilMs }: { visits: readonly Visit[]; events: readonly FleetEvent[]; untilMs: number },
): Generator<{ readonly atMs: number; readonly done: void | Promise<void> }, void, void> {
  let visit = 0
  /** Time of the last activity. The visit index only increases, as times do. */
  const movedBy = (nowMs: number): number => {
    for (let next = visits[visit + 1]; next !== undefined && next.fromMs <= nowMs; next = visits[visit + 1])
      visit++
    const current = visits[visit]
    return (current === undefined ? undefined : lastMoveOf(current, nowMs)) ?? 0
  }
  for (const { atMs, kind } of [...events, { atMs: untilMs, kind: 'end' as const }]) {
    for (let alarmMs = sandbox.alarmMs; alarmMs !== undefined && alarmMs <= atMs; alarmMs = sandbox.alarmMs)
      yield { atMs: alarmMs, done: sandbox.fire(alarmMs, movedBy(alarmMs)) }
    if (kind === 'attach') yield { atMs, done: sandbox.attach(atMs) }
    if (kind === 'join') yield { atMs, done: sandbox.join(atMs) }
  }
}
