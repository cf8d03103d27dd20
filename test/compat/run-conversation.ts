import { expect } from 'bun:test'
import { eventually, type PtyClient, type PtyMessage } from '@sandwire/testing'
import { type Conversation, QUIET_MARK, type Step } from './pty-goldens.ts'
import { isGolden } from './template.ts'

interface Open {
  readonly client: PtyClient
  /** Number of messages that were checked. */
  received: number
}

/** Merges adjacent outputs and drops those before the shell was silenced: both differ from run to run. */
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

async function receive(open: Open, goldens: readonly string[]): Promise<void> {
  const now = (): string[] => tidy(open.client.messages.slice(open.received))
  const isComplete = (): boolean => {
    const messages = now()
    return (
      messages.length === goldens.length &&
      messages.every((each, index) => isGolden(each, goldens[index] ?? ''))
    )
  }
  // A mismatch is reported side by side below.
  await eventually(isComplete, { what: goldens.join() }).catch(() => undefined)
  const messages = now()
  expect(
    messages.map((each, index) => (isGolden(each, goldens[index] ?? '') ? goldens[index] : each)),
  ).toEqual([...goldens])
  open.received = open.client.messages.length
}

async function expectFirst(open: Open, golden: string): Promise<void> {
  const { client } = open
  const message = await eventually(() => client.messages[0], { what: golden })
  expect([JSON.stringify(message)].filter((each) => !isGolden(each, golden))).toEqual([])
  open.received = 1
}

/** Runs a recorded conversation. */
export async function runConversation(
  { steps }: Conversation,
  connect: (query: Readonly<Record<string, string>>) => PtyClient,
  killedCode: null | 137,
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
      open.set(step.open, { client: connect(query), received: 0 })
    } else if ('send' in step) get(step.to).client.send(step.send)
    else if ('startsWith' in step) await expectFirst(get(step.from), step.startsWith)
    else if ('receive' in step)
      await receive(
        get(step.from),
        step.receive.map((golden) => golden.replace('$KILLED', String(killedCode))),
      )
    else if ('close' in step) expect(await get(step.from).client.closed()).toEqual(step.close)
    else await get(step.leave).client.disconnect()
  }
  try {
    for (const step of steps) await perform(step)
  } finally {
    for (const { client } of open.values()) await client.disconnect()
  }
}
