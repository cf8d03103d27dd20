import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { Attached, runShell } from './support/attached.ts'
import { Deployment } from './support/deployment.ts'
import { findStarterProblem } from './support/isolation/isolated.ts'

/** Prints a running count, so that a lost or repeated byte shows. */
const COUNT = 'n=0; while read line; do n=$((n+1)); echo "$n $line"; done'

for (const starter of ['root', 'nobody'] as const) {
  const problem = await findStarterProblem(starter)
  describe.skipIf(problem !== undefined)(`closing the connections to a sandbox started by ${starter}`, () => {
    let deployment: Deployment
    beforeAll(async () => {
      deployment = await Deployment.open({ isNobody: starter === 'nobody' })
    })
    afterAll(() => deployment[Symbol.asyncDispose]())

    async function closeConnections(id: string): Promise<number> {
      const unix = join(deployment.data, 'run', 'host.sock')
      const init = { unix, method: 'POST', headers: { connection: 'close' } }
      return (await fetch(`http://host/sandboxes/${id}/disconnect`, init)).status
    }

    test('works with sandboxd stopped, affects no other sandbox, and lets clients resume exactly (threat T40)', async () => {
      const { id } = await deployment.create('closed')
      await deployment.create('other')
      const [closed, other] = [deployment.sandbox('closed'), deployment.sandbox('other')]
      // A late heartbeat must not be what disconnects them.
      const patient = { heartbeatMs: 3_600_000 }
      await using driver = runShell(closed, COUNT, patient)
      await driver.isAttached()
      await using viewer = new Attached(closed, { session: driver.session, role: 'viewer' }, patient)
      await using unaffected = runShell(other, COUNT)
      await Promise.all([viewer.isAttached(), unaffected.isAttached()])
      await driver.send('before\n')
      await Promise.all([driver, viewer].map((each) => each.waitFor('1 before\n')))
      const workerd = deployment.workerd
      const daemon = deployment.sandboxd(id)
      process.kill(daemon, 'SIGSTOP')
      try {
        expect(await closeConnections(id)).toBe(204)
        await eventually(() => driver.reconnections > 0 && viewer.reconnections > 0, {
          what: 'the disconnects',
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
      await unaffected.send('here\n')
      await unaffected.waitFor('1 here\n')
      expect(unaffected.reconnections).toBe(0)
      expect(deployment.workerd).toBe(workerd)
    })
  })
}
