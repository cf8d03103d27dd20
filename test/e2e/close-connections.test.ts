import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { Attached, runShell } from './support/attached.ts'
import { Deployment } from './support/deployment.ts'
import { findStarterProblem } from './support/isolation/isolated.ts'

const WAIT = { timeoutMs: 30_000 }
/** Counts aloud, so that a byte lost or doubled shows. */
const COUNT = 'n=0; while read line; do n=$((n+1)); echo "$n $line"; done'

for (const starter of ['root', 'nobody'] as const) {
  const problem = await findStarterProblem(starter)
  describe.skipIf(problem !== undefined)(`cutting the connections into a sandbox of ${starter}`, () => {
    let deployment: Deployment
    beforeAll(async () => {
      deployment = await Deployment.open({ isNobody: starter === 'nobody' })
    })
    afterAll(() => deployment[Symbol.asyncDispose]())

    async function sever(id: string): Promise<number> {
      const unix = join(deployment.data, 'run', 'host.sock')
      const init = { unix, method: 'POST', headers: { connection: 'close' } }
      return (await fetch(`http://host/sandboxes/${id}/disconnect`, init)).status
    }

    test('needs nothing of its sandboxd, spares its neighbors, and is resumed exactly (threat T40)', async () => {
      const { id } = await deployment.create('cut')
      await deployment.create('spared')
      const [cut, spared] = [deployment.sandbox('cut'), deployment.sandbox('spared')]
      await using driver = runShell(cut, COUNT)
      await driver.isAttached()
      await using viewer = new Attached(cut, { session: driver.session, role: 'viewer' })
      await using neighbor = runShell(spared, COUNT)
      await Promise.all([viewer.isAttached(), neighbor.isAttached()])
      await driver.send('before\n')
      await Promise.all([driver, viewer].map((each) => each.waitFor('1 before\n')))
      const workerd = deployment.workerd
      const daemon = deployment.sandboxd(id)
      process.kill(daemon, 'SIGSTOP')
      try {
        expect(await sever(id)).toBe(204)
        await eventually(() => driver.reconnections > 0 && viewer.reconnections > 0, {
          what: 'the cuts',
          ...WAIT,
        })
        await driver.send('meanwhile\n')
      } finally {
        process.kill(daemon, 'SIGCONT')
      }
      await driver.send('after\n')
      const expected = '1 before\n2 meanwhile\n3 after\n'
      for (const each of [driver, viewer]) {
        await each.waitFor('3 after\n')
        expect(each.text).toBe(expected)
        expect(each.gaps).toEqual([])
      }
      await neighbor.send('here\n')
      await neighbor.waitFor('1 here\n')
      expect(neighbor.reconnections).toBe(0)
      expect(deployment.workerd).toBe(workerd)
    })
  })
}
