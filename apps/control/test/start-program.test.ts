import { expect, test } from 'bun:test'
import type { AgentState } from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import { startProgram } from '../src/run/start-program.ts'

const SANDBOX = 'a'.repeat(32)
const CONVERSATION = `${SANDBOX}__${'b'.repeat(24)}`

function viewOf(run: string, state: AgentState): object {
  const usage = {
    turns: 0,
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: 0,
  }
  return {
    run,
    journal: 'j',
    state,
    lastSeq: 1,
    startedMs: 1,
    endedMs: null,
    reason: null,
    message: null,
    agentSessionId: null,
    model: null,
    usage,
    approvals: [],
    isTamperProof: true,
  }
}

/** Starts a program in a sandbox with other ones; returns the code of the refusal and the programs that were stopped. */
async function startBeside(agents: readonly object[]): Promise<readonly [string, readonly string[]]> {
  const stopped: string[] = []
  const error: unknown = await startProgram({
    start: () => Promise.reject(new SandwireError('conflict', 'Another one is at work')),
    list: () => Promise.resolve({ agents }),
    stop: (run) => Promise.resolve(stopped.push(run)),
  }).catch((caught: unknown) => caught)
  return [SandwireError.from(error).code, stopped]
}

test('ends programs of conversations that rest in the sandbox, and no others', async () => {
  const resting = viewOf(`${CONVERSATION}-2`, 'idle')
  expect(await startBeside([resting, viewOf(`${CONVERSATION}-1`, 'ended')])).toEqual([
    'run_not_started',
    [`${CONVERSATION}-2`],
  ])
  for (const state of ['turn', 'awaiting'] as const)
    expect(await startBeside([viewOf(`${CONVERSATION}-2`, state)])).toEqual(['conflict', []])
  // A run that waits for a message would end.
  expect(await startBeside([viewOf(`${SANDBOX}_${'b'.repeat(24)}`, 'idle')])).toEqual(['conflict', []])
})
