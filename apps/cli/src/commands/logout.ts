import type { Credential } from '../sign-in/credential.ts'
import { CredentialStore } from '../sign-in/credential-store.ts'
import { endSignIn, storedBearer } from '../sign-in/stored-sign-in.ts'
import { openSignInLock } from '../sign-in/sign-in-lock.ts'
import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { optionalUrl } from './positionals.ts'

/** Takes the sign-in out of the store; nobody else renews it meanwhile. */
async function takeOut(store: CredentialStore, origin: string): Promise<Credential | undefined> {
  store.prepare()
  using _lock = await openSignInLock(store, origin)
  try {
    return store.read(origin)
  } catch {
    // It is not understood, so there is nothing in it that anybody could be told.
    return undefined
  } finally {
    store.remove(origin)
  }
}

/** Signs out of a server, here and there. */
export const logout: Command = {
  help: `Usage: sbx-stdio logout [URL] [--json]

Signs out of a server: forgets what login stored, tells the server, which cuts what is attached with it, and withdraws
the sign-in at the issuer. Works when they cannot be reached, and says what they could not be told.
`,
  options: {},
  read: (words) => {
    const url = optionalUrl(words)
    return {
      ...(url === undefined ? {} : { url }),
      isAnonymous: true,
      run: async ({ env, io, isJson, origin }) => {
        const { host } = new URL(origin)
        const store = new CredentialStore(env)
        // The server takes only a bearer that has not ended. When there is none, there is nothing it could be told.
        const bearer = await storedBearer(store, origin).catch(() => undefined)
        const credential = await takeOut(store, origin)
        if (credential === undefined) {
          if (isJson) io.print(formatJson({ origin, signedOut: false }))
          else io.say(`you are not signed in to ${host}`)
          return
        }
        const { server, issuer } = await endSignIn(credential, bearer ?? credential.bearer)
        if (isJson) {
          io.print(formatJson({ origin, signedOut: true, server, issuer }))
          return
        }
        io.say(`Signed out of ${host}`)
        if (credential.renewal === undefined)
          io.say('you were a guest there; to come back you need a new link')
        if (server.is === 'untold')
          io.say(
            `the server could not be told, so what is attached stays until its access ends: ${server.why}`,
          )
        if (issuer.is === 'untold') io.say(`the issuer could not be told: ${issuer.why}`)
      },
    }
  },
}
