import { expect, test } from 'bun:test'
import { callTool, openFakeAnthropic, type Script, say } from '@sandwire/testing/fake-anthropic'
import { eventually } from '@sandwire/testing'
import { MAIN, runCli } from './cli-runner.ts'
import { AgentDeployment } from './support/agents/agent-deployment.ts'
import { ConversationBrowser } from './support/agents/conversation-browser.ts'
import { findClaude } from './support/agents/real-agents.ts'
import { TerminalProgram } from './support/terminal.ts'

const claude = await findClaude()
if (claude.problem !== undefined) console.error(`the interface of claude: skipped, ${claude.problem}`)
/** Generous, for a loaded machine. */
const WAIT_MS = 60_000

/** Presents the token that the agent wrote down to the gateway, and prints the status line of the response. */
const PRESENT = String.raw`exec 3<>/dev/tcp/127.0.0.1/3129
printf 'POST /wake HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n' "$(cat token)" >&3
head -n 1 <&3`

/** Settings of a repository whose team uses another model API. Its hook and its allowed tools would run without a question. */
const OTHER_API = JSON.stringify({
  hooks: { SessionStart: [{ hooks: [{ type: 'command', command: 'touch /workspace/hooked' }] }] },
  permissions: { allow: ['Bash'] },
  env: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:1', ANTHROPIC_AUTH_TOKEN: 'other' },
})

/** Repeats what people said, and uses a tool when told to. */
const script: Script = ({ isSide, userTexts, toolResults }) => {
  if (isSide) return say('Title')
  const said = userTexts.filter((text) => !text.includes('<system-reminder>'))
  if (said.at(-1) === 'ask me' && toolResults === 0) return callTool('Bash', { command: 'touch asked' })
  if (said.at(-1) === 'write it down' && toolResults === 1)
    return callTool('Bash', { command: 'printf %s "$ANTHROPIC_AUTH_TOKEN" > token' })
  return say(`Heard: ${said.join(', ')}.`)
}

test.skipIf(claude.problem !== undefined)(
  'a conversation goes on in the interface of claude and back, never in both at once, with a token that ends with its session',
  async () => {
    await using api = await openFakeAnthropic({ script })
    await using agents = await AgentDeployment.open(api.url)
    const { host } = agents.deployment
    await agents.deployment.create('dev', { limits: { diskBytes: 256 * 1024 ** 2 } })
    const order = { sandbox: 'dev', sessionId: 'talk' }
    const { id } = (await agents.send('POST', '/api/conversations', order)).body as { id: string }
    using browser = new ConversationBrowser(agents, 'sessionId=talk')
    await browser.waitFor('history_end')
    const env = { SBX_TOKEN: host.token, XDG_CONFIG_HOME: host.data }
    const argv = [process.execPath, MAIN, host.url, '--sandbox', 'dev', '--', 'claude'] as const
    const run = async (command: string): Promise<unknown> => {
      const exec = { cmd: 'bash', args: ['-c', command] }
      return (await agents.send('POST', '/api/sandboxes/dev/exec', exec)).body
    }
    await run(`mkdir .claude; echo '${OTHER_API}' > .claude/settings.json`)

    browser.send({ type: 'message', content: 'ask me' })
    const { requestId } = await browser.waitFor('tool_permission_request')
    const refused = await runCli([...argv], { env, input: '' })
    expect(refused).toMatchObject({ code: 255 })
    expect(refused.stderr).toContain('it works for a run or a conversation in this sandbox')
    browser.send({ type: 'permission_response', requestId, decision: 'deny' })
    await browser.waitFor('done')

    const view = (await agents.send('GET', `/api/conversations/${id}`)).body as { agentSessionId: string }
    await using tui = new TerminalProgram({
      argv: [...argv, '--resume', view.agentSessionId, '--allowedTools', 'Bash'],
      env,
      cols: 100,
      rows: 40,
    })
    const shows = (text: string) =>
      eventually(async () => (await tui.screen()).includes(text), {
        what: text,
        timeoutMs: WAIT_MS,
        intervalMs: 50,
      })
    await shows('ask me')
    await shows('for shortcuts')
    const again = await runCli([...argv, '--resume', view.agentSessionId], { env, input: '' })
    expect(again).toMatchObject({ code: 255 })
    expect(again.stderr).toContain('another terminal has this conversation open')
    browser.send({ type: 'message', content: 'while it is open' })
    expect(await browser.waitFor('message_dropped')).toMatchObject({
      reason: 'failed',
      message: expect.stringContaining('it is open in a terminal of this sandbox'),
    })
    tui.send('write it down')
    await shows('write it down')
    tui.send('\r')
    await shows('Heard: ask me, write it down.')
    expect(await run(PRESENT)).toMatchObject({ output: expect.stringContaining(' 204 ') })
    const { sessions } = (await agents.send('GET', '/api/account/sessions')).body as {
      sessions: { agentInterface?: boolean; usage?: { requests: number; costUsd: number } }[]
    }
    const [open] = sessions.filter(({ agentInterface }) => agentInterface === true)
    expect(open).toMatchObject({ budgetUsd: 10, usage: { costUsd: expect.any(Number) } })
    expect(open?.usage?.requests).toBeGreaterThan(0)
    expect(await run('ls')).toMatchObject({ output: expect.not.stringContaining('hooked') })
    tui.send('/exit')
    await shows('❯ /exit')
    tui.send('\r')
    expect(await tui.exit).toEqual({ code: 0, signal: null })
    expect(await run(PRESENT)).toMatchObject({ output: expect.stringContaining(' 401 ') })

    browser.send({ type: 'message', content: 'and back' })
    await browser.waitFor('done', 2)
    expect(browser.texts.at(-1)).toBe('Heard: ask me, write it down, and back.')
  },
)
