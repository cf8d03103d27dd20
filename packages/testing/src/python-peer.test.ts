import { createHash } from 'node:crypto'
import { describe, expect, test } from 'bun:test'
import { patternAt } from './pattern.ts'
import { openPlainServer } from './plain-server.fixture.ts'
import { findPythonPeerProblem, runPythonPeer } from './python-peer.ts'

const problem = await findPythonPeerProblem()
const headers = { authorization: 'Bearer good' }

describe.skipIf(problem !== undefined)(
  `runPythonPeer${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    test('sends input and eof, and reports the response', async () => {
      await using server = openPlainServer()
      const input = patternAt(1, 0, 2_000_000)
      const result = await runPythonPeer({ url: server.url, headers, input, messages: [{ type: 'resize' }] })
      expect(result).toMatchObject({
        kind: 'closed',
        code: 1000,
        control: [{ type: 'exit', code: 5 }],
        stdout: { length: input.length, sha256: createHash('sha256').update(input).digest('hex') },
        stderr: { head: 'got resize\ngot eof\n' },
      })
    })

    test('reports the status of a refusal', async () => {
      await using server = openPlainServer()
      expect(await runPythonPeer({ url: server.url })).toEqual({ kind: 'refused', status: 401 })
    })

    test('reports a dropped connection as 1006', async () => {
      await using server = openPlainServer()
      const result = await runPythonPeer({ url: server.url, headers, messages: [{ type: 'drop' }] })
      expect(result).toMatchObject({ kind: 'closed', code: 1006 })
    })
  },
)
