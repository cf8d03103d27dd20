import { connectPlain, eventually } from '@sandwire/testing'
import type { RunningSandboxd } from './sandboxd.ts'

/** A plain session that the attack under test must not affect. */
export interface UnaffectedPlainSession extends AsyncDisposable {
  /** Sends a line and waits for its echo; rejects after a timeout. */
  readonly check: () => Promise<void>
}

/** Opens a session that echoes its input. */
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
