import type { Credential } from '../sign-in/credential.ts'
import { CredentialStore } from '../sign-in/credential-store.ts'
import { endSignIn, storedBearer } from '../sign-in/stored-sign-in.ts'
import { openSignInLock } from '../sign-in/sign-in-lock.ts'
import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { optionalUrl } from './positionals.ts'

/** Removes the sign-in from the store, under the lock that renewals take. */
async function removeStored(store: CredentialStore, origin: string): Promise<Credential | undefined> {
  store.prepare()
  using _lock = await openSignInLock(store, origin)
  try {
    return store.read(origin)
  } catch {
    // An unreadable file has no token to revoke.
    return undefined
  } finally {
    store.remove(origin)
  }
}

/** Signs out of a server: locally, at the server and at the issuer. */
export const logout: Command = {
  help: `Usage: sbx-stdio logout [URL] [--json]

Signs out of a server (default: SBX_URL, or the only known one): removes the stored sign-in, closes connections that
use it, and revokes it at the issuer. If the server or the issuer cannot be reached, the stored sign-in is removed all
the same.
`,
  options: {},
  parse: (options) => {
    const url = optionalUrl(options)
    return {
      ...(url === undefined ? {} : { url }),
      isAnonymous: true,
      run: async ({ env, io, isJson, origin }) => {
        const { host } = new URL(origin)
        const store = new CredentialStore(env)
        // The server accepts only a valid bearer. Without one, it cannot be notified.
        const bearer = await storedBearer(store, origin).catch(() => undefined)
        const credential = await removeStored(store, origin)
        if (credential === undefined) {
          if (isJson) io.print(formatJson({ origin, signedOut: false }))
          else io.info(`not signed in to ${host}`)
          return
        }
        const { server, issuer } = await endSignIn(credential, bearer ?? credential.bearer)
        if (isJson) {
          io.print(formatJson({ origin, signedOut: true, server, issuer }))
          return
        }
        io.info(`Signed out of ${host}`)
        if (credential.renewal === undefined)
          io.info('you were a guest; you need a new link to get access again')
        if (server.kind === 'failed')
          io.info(
            `the server could not be notified, so open connections stay until they expire: ${server.reason}`,
          )
        if (issuer.kind === 'failed') io.info(`the issuer could not be notified: ${issuer.reason}`)
      },
    }
  },
}
