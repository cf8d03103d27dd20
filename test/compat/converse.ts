import { expect } from 'bun:test'
import { eventually, type PtyClient, type PtyMessage } from '@sandwire/testing'
import { type Conversation, QUIET_MARK, type Step } from './pty-goldens.ts'
import { isGolden } from './template.ts'

const WAIT = { timeoutMs: 15_000 }

interface Open {
  readonly client: PtyClient
  /** Messages that were heard. */
  heard: number
}

/** Neighboring outputs as one, and nothing of what the shell said before it was made quiet: both differ from run to run. */
function tidy(messages: readonly PtyMessage[]): string[] {
  const tidied: PtyMessage[] = []
  for (const message of messages) {
    const last = tidied.at(-1)
    if (message.type === 'output' && last?.type === 'output')
      tidied[tidied.length - 1] = { ...last, data: `${String(last['data'])}${String(message['data'])}` }
    else tidied.push(message)
  }
  return tidied.map((message) => JSON.stringify(withoutShell(message)))
}

function withoutShell(message: PtyMessage): PtyMessage {
  const data = message['data']
  const at = typeof data === 'string' ? data.indexOf(QUIET_MARK) : -1
  return at < 0 ? message : { ...message, data: String(data).slice(at) }
}

async function hear(open: Open, goldens: readonly string[]): Promise<void> {
  const now = (): string[] => tidy(open.client.messages.slice(open.heard))
  const isThere = (): boolean => {
    const said = now()
    return said.length === goldens.length && said.every((each, index) => isGolden(each, goldens[index] ?? ''))
  }
  // A mismatch is shown side by side below.
  await eventually(isThere, { what: goldens.join(), ...WAIT }).catch(() => undefined)
  const said = now()
  expect(said.map((each, index) => (isGolden(each, goldens[index] ?? '') ? goldens[index] : each))).toEqual([
    ...goldens,
  ])
  open.heard = open.client.messages.length
}

async function begin(open: Open, golden: string): Promise<void> {
  const { client } = open
  const said = await eventually(() => client.messages[0], { what: golden, ...WAIT })
  expect([JSON.stringify(said)].filter((each) => !isGolden(each, golden))).toEqual([])
  open.heard = 1
}

/** Holds a conversation as it is written down. */
export async function converse(
  { steps }: Conversation,
  connect: (query: Readonly<Record<string, string>>) => PtyClient,
): Promise<void> {
  const open = new Map<string, Open>()
  const get = (name: string): Open => {
    const found = open.get(name)
    if (found === undefined) throw new Error(`Nothing is open as "${name}"`)
    return found
  }
  const perform = async (step: Step): Promise<void> => {
    if ('open' in step) {
      const names = Object.entries(step.query ?? {}).map(async ([name, value]) => [
        name,
        value.startsWith('$') ? await get(value.slice(1)).client.name() : value,
      ])
      const query = Object.fromEntries(await Promise.all(names))
      open.set(step.open, { client: connect(query), heard: 0 })
    } else if ('say' in step) get(step.to).client.say(step.say)
    else if ('begins' in step) await begin(get(step.from), step.begins)
    else if ('hear' in step) await hear(get(step.from), step.hear)
    else if ('close' in step) expect(await get(step.from).client.closed()).toEqual(step.close)
    else await get(step.leave).client.leave()
  }
  try {
    for (const step of steps) await perform(step)
  } finally {
    for (const { client } of open.values()) await client.leave()
  }
}
