import { connectPlain, eventually } from '@sandwire/testing'
import type { RunningSandboxd } from './sandboxd.ts'

/** A session that has nothing to do with a test and must not notice it. */
export interface UnaffectedPlainSession extends AsyncDisposable {
  /** Sends a line through the process and back; rejects when that takes too long. */
  readonly check: () => Promise<void>
}

/** Opens a well-behaved session on the same server. */
export async function openUnaffectedPlainSession(sandboxd: RunningSandboxd): Promise<UnaffectedPlainSession> {
  const client = await connectPlain(sandboxd.socketUrl('/attach?cmd=cat'), { headers: sandboxd.headers })
  let sent = ''
  return {
    check: async () => {
      const line = `line ${sent.length}\n`
      sent += line
      await client.sendInput(line)
      await eventually(() => client.stdout.length === sent.length, { what: 'the echo' })
      if (client.stdout.text !== sent) throw new Error(`The unaffected session got "${client.stdout.text}"`)
    },
    [Symbol.asyncDispose]: async () => void (await client.close()),
  }
}
