import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, readProcessTable } from '@sandwire/testing'
import { runShell } from './support/attached.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

let sandboxd: RunningSandboxd
beforeAll(async () => {
  sandboxd = await startSandboxd()
})
afterAll(async () => void (await sandboxd.stop()))

/** Sleep durations that no other test uses. */
const LENGTHS = { first: '86123', second: '86124' }

function isAsleep(length: string): boolean {
  return Bun.spawnSync(['pgrep', '-f', `^sleep ${length}$`]).exitCode === 0
}

/** Direct children of sandboxd, zombies included. */
function countChildren(): { all: number; zombies: number } {
  const children = readProcessTable().filter(({ parentPid }) => parentPid === sandboxd.pid)
  return { all: children.length, zombies: children.filter(({ state }) => state === 'Z').length }
}

/** A classic daemon: forked twice, in its own session, with an empty environment and no inherited descriptors. */
const daemon = (length: string): string =>
  `(env -i setsid sh -c 'sleep ${length} &' >/dev/null 2>&1 </dev/null &)`

describe('(threat T40) a process that lost its parent', () => {
  test('is reparented to sandboxd, and leaves no zombie when it ends', async () => {
    const script =
      'for i in 1 2 3 4 5; do (setsid sleep 86125 &); done; echo started; read line; pkill -f "^sleep 86125"; sleep 86126'
    await using client = runShell(sandboxd, script)
    await client.waitFor('started')
    await eventually(() => countChildren().all === 6, { what: 'the orphans' })
    await client.send('\n')
    await eventually(() => countChildren().all === 1, { what: 'their end' })
  })

  test('[X11] ends with its own session only', async () => {
    await using one = runShell(sandboxd, `${daemon(LENGTHS.first)}; echo ready; sleep 86126`)
    await using two = runShell(sandboxd, `${daemon(LENGTHS.second)}; echo ready; sleep 86127`)
    await Promise.all([one.waitFor('ready'), two.waitFor('ready')])
    await eventually(() => isAsleep(LENGTHS.first) && isAsleep(LENGTHS.second), {
      what: 'both daemons',
    })
    await sandboxd.fetch(`/sessions/${one.session}`, { method: 'DELETE' })
    await eventually(() => !isAsleep(LENGTHS.first), { what: 'the end of the first' })
    expect(isAsleep(LENGTHS.second)).toBe(true)
    await sandboxd.fetch(`/sessions/${two.session}`, { method: 'DELETE' })
    await eventually(() => !isAsleep(LENGTHS.second), { what: 'the end of the second' })
    await eventually(() => countChildren().all === 0, {
      what: 'no child',
    })
  })

  test('[X5] does not affect the exit status of another process', async () => {
    const codes = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        await using client = runShell(sandboxd, `(setsid true &); (setsid true &); exit ${index}`)
        return (await client.exit).code
      }),
    )
    expect(codes).toEqual(Array.from({ length: 40 }, (_, index) => index))
    await eventually(() => countChildren().zombies === 0, {
      what: 'no zombie',
    })
  })
})
