import type { RunningHost } from '../../test/e2e/support/control.ts'
import { openParts } from '../competitors.ts'
import { createSandbox, findIsolationProblem, openHost } from '../peers/control-plane.ts'
import { EchoSession } from '../peers/echo-session.ts'
import type { Row } from '../row.ts'
import { quantile } from '../statistics.ts'

/** Sandboxes that the sessions are spread over. */
const SESSIONS = 500
const SANDBOXES = 5

/** Sessions opened concurrently. */
const PARALLEL = 8

/** Interval of input per session, with different phases. */
const TRIP_EVERY_MS = 1_000
const TRIPS = 10

async function typeFor(session: EchoSession, delayMs: number): Promise<number[]> {
  const times: number[] = []
  await Bun.sleep(delayMs)
  for (let left = TRIPS; left > 0; left -= 1) {
    const ms = await session.trip()
    times.push(ms)
    await Bun.sleep(Math.max(0, TRIP_EVERY_MS - ms))
  }
  return times
}

/** Fails if any session fails, ends or loses its connection. */
async function measureEchoes(host: RunningHost, sandboxes: readonly string[]) {
  const sessions: EchoSession[] = []
  const open = async (from: number): Promise<void> => {
    for (let index = from; index < SESSIONS; index += PARALLEL) {
      const session = new EchoSession(host, sandboxes[index % sandboxes.length] ?? '')
      await session.attached
      sessions.push(session)
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, (_, from) => open(from)))
  const step = TRIP_EVERY_MS / SESSIONS
  const times = (await Promise.all(sessions.map((each, index) => typeFor(each, index * step)))).flat()
  await Promise.all(sessions.map((session) => session.end()))
  return { 'echo p50': quantile(times, 0.5), 'echo p99': quantile(times, 0.99) }
}

export const manySessions: Row = {
  id: 'sessions-500',
  title: `${SESSIONS} sessions at once`,
  unit: 'ms',
  digits: 2,
  about: `One byte a second through \`cat\` and back in each of ${SESSIONS} sessions of ${SANDBOXES} sandboxes; one that fails fails the row.`,
  targets: [],
  open: async () => {
    const problem = findIsolationProblem()
    if (problem !== undefined) return [{ name: 'echo p50', absent: problem }]
    return openHost(async (host) => {
      const sandboxes = Array.from({ length: SANDBOXES }, (_, index) => `many-${index}`)
      for (const sandbox of sandboxes) await createSandbox(host, sandbox)
      return openParts({
        parts: ['echo p50', 'echo p99'],
        measure: () => measureEchoes(host, sandboxes),
        close: host.stop,
      })
    })
  },
}
