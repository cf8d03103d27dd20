import { readFileSync, readdirSync } from 'node:fs'
import { callTool, inTurns, openFakeAnthropic, say } from '@sandwire/testing/fake-anthropic'
import { AgentDeployment } from '../e2e/support/agents/agent-deployment.ts'

/** Of an account, by default. */
const CONCURRENT = 8
const POLL_MS = 1_000
const PAGE_BYTES = 4_096

/** Memory of all programs that were started from this folder of agents. */
function agentBytes(): number {
  const sizes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('/opt/agents/')) return 0
        return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES
      } catch {
        // Ended meanwhile.
        return 0
      }
    })
  return sizes.reduce((sum, bytes) => sum + bytes, 0)
}

/** Starts runs at once on a host with the real agent and a scripted model; throws unless each ends with its diff. */
export async function submitRuns(
  wanted: number,
): Promise<{ readonly mostAtWork: number; readonly mostBytes: number }> {
  const script = inTurns(
    callTool('Write', { file_path: '/workspace/made.txt', content: 'made\n' }),
    callTool('Bash', { command: 'sleep 1' }),
    say('Done'),
  )
  await using api = await openFakeAnthropic({ script })
  await using agents = await AgentDeployment.open(api.url)
  const runs = await Promise.all(Array.from({ length: wanted }, () => agents.start('Work', { keep: false })))
  let mostAtWork = 0
  let mostBytes = 0
  for (;;) {
    const views = await Promise.all(runs.map(({ id }) => agents.view(id)))
    const atWork = views.filter(({ state }) => state !== 'queued' && state !== 'ended').length
    mostAtWork = Math.max(mostAtWork, atWork)
    mostBytes = Math.max(mostBytes, agentBytes())
    if (atWork > CONCURRENT) throw new Error(`${atWork} runs work at the same time, ${CONCURRENT} may`)
    if (views.every(({ state }) => state === 'ended')) break
    await Bun.sleep(POLL_MS)
  }
  for (const { id } of runs) {
    const { outcome, message } = await agents.view(id)
    if (outcome !== 'completed') throw new Error(`Run ${id} ended as ${outcome}: ${message}`)
    if (!(await agents.diff(id)).includes('+made')) throw new Error(`Run ${id} has no diff`)
  }
  return { mostAtWork, mostBytes }
}
