import { SandwireError } from '@sandwire/protocol'
import { createApi } from '../api.ts'
import { printable } from '../printable.ts'
import { type Credential, endpointsOf } from '../sign-in/credential.ts'
import { CredentialStore } from '../sign-in/credential-store.ts'
import { openLock } from '../sign-in/lock-file.ts'
import { storedBearer } from '../sign-in/stored-bearer.ts'
import { spellJson } from '../table.ts'
import type { Command } from './command.ts'
import { readOptionalUrl } from './positionals.ts'

/** What came of telling somebody. */
type Told =
  | { readonly is: 'told' }
  | { readonly is: 'notNeeded' }
  | { readonly is: 'untold'; readonly why: string }

async function tell(act: () => Promise<unknown>): Promise<Told> {
  try {
    await act()
    return { is: 'told' }
  } catch (error) {
    return { is: 'untold', why: printable(SandwireError.from(error).message) }
  }
}

async function tellIssuer({ renewal }: Credential): Promise<Told> {
  if (renewal?.refreshToken === undefined || renewal.revocationEndpoint === undefined)
    return { is: 'notNeeded' }
  const { refreshToken } = renewal
  const { explain, revokeToken } = await import('../sign-in/issuer-client.ts')
  return await tell(async () => {
    try {
      await revokeToken(endpointsOf(renewal), refreshToken)
    } catch (error) {
      throw explain(error, 'Cannot withdraw the sign-in')
    }
  })
}

/** Takes the sign-in out of the store; nobody else renews it meanwhile. */
async function takeOut(store: CredentialStore, origin: string): Promise<Credential | undefined> {
  store.prepare()
  using _lock = await openLock(`${store.fileOf(origin)}.lock`)
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
    const url = readOptionalUrl(words)
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
          if (isJson) io.print(spellJson({ origin, signedOut: false }))
          else io.say(`you are not signed in to ${host}`)
          return
        }
        const token = bearer ?? credential.bearer
        const api = createApi({ origin, bearer: () => Promise.resolve(token) })
        const server = await tell(() => api.request('POST', '/api/signout'))
        const issuer = await tellIssuer(credential)
        if (isJson) {
          io.print(spellJson({ origin, signedOut: true, server, issuer }))
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
