import { type ErrorCode, SandwireError, schema } from '@sandwire/protocol'
import { HintedError } from '../errors/errors.ts'
import { createApi } from '../server/api.ts'
import { looseObject, decodeResponse } from '../server/response.ts'
import { shellQuote } from '@sandwire/shell-quote'
import { exitCodeOfSignal } from '../errors/exit-code.ts'
import { printable } from '../text/printable.ts'
import { selectIssuer, decodeAuth, type SignInIssuer } from '../sign-in/issuer-info.ts'
import type { Credential } from '../sign-in/credential.ts'
import { CredentialStore } from '../sign-in/credential-store.ts'
import type { DevicePrompt } from '../sign-in/device-sign-in.ts'
import { type EndpointSource, checkEndpoints } from '../sign-in/endpoint-policy.ts'
import { ServerTrust } from '../sign-in/server-trust.ts'
import { replaceSignIn, revokeAtIssuer } from '../sign-in/stored-sign-in.ts'
import { isSecureUrl } from '../server/address.ts'
import { formatJson } from '../text/table.ts'
import { UsageError } from '../errors/errors.ts'
import type { Command, CommandContext } from './command.ts'
import { optionalUrl } from './positionals.ts'

/** Errors that mean that the server does not accept the token of the issuer. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set(['unauthorized', 'forbidden', 'no_issuer'])

const REFUSED_HINT = 'ask the operator of the server to check the audience and scopes of its issuer'
const JUST_ENDED = 'Cannot sign in: the account was just deleted or signed out'
const JUST_ENDED_HINT = 'try again in a minute'

type Trust = Pick<EndpointSource, 'isTrusted' | 'trustHint'>

const nameSchema = looseObject({ name: schema.text(1024) })

function formatPrompt({ address, code, completeAddress }: DevicePrompt): string {
  const both = completeAddress === undefined ? '' : `  Or open     ${completeAddress}\n`
  return `\n  Open        ${address}\n  Enter code  ${code}\n${both}\n`
}

/** The account name for a credential; undefined when the server cannot be reached. Throws if it is not accepted. */
async function fetchName({ origin, bearer }: Credential): Promise<string | undefined> {
  const api = createApi({ origin, bearer: () => Promise.resolve(bearer) })
  try {
    return printable(decodeResponse(nameSchema, await api.request('GET', '/api/whoami')).name)
  } catch (caught) {
    const error = SandwireError.from(caught)
    if (!REFUSALS.has(error.code)) return undefined
    if (error.details.reason === 'sign_in_ended')
      throw new HintedError('forbidden', JUST_ENDED, JUST_ENDED_HINT)
    const what = `Cannot sign in: the server refused the token: ${error.message}`
    throw new HintedError('forbidden', what, REFUSED_HINT)
  }
}

async function signInWith(
  info: SignInIssuer,
  { trust, servers }: { readonly trust: Trust; readonly servers: ServerTrust },
  { io, origin }: CommandContext,
): Promise<Credential | undefined> {
  using interruption = io.openInterruption()
  // Loaded on demand, because other commands do not need it.
  const { signIn } = await import('../sign-in/device-sign-in.ts')
  const show = (prompt: DevicePrompt): void => {
    io.write(formatPrompt(prompt))
    io.info('waiting for you to confirm there (Ctrl+C to cancel)')
    // Without the code: other users of this machine can see the arguments of the browser.
    io.openBrowser(prompt.address)
  }
  const onOtherHosts = (hosts: readonly string[]): void =>
    io.info(`the sign-in also uses ${hosts.join(' and ')}`)
  try {
    return await signIn(origin, info, {
      show,
      onOtherHosts,
      confirmEndpoints: (endpoints) => servers.checkEndpoints(endpoints),
      confirmPage: (page, issuer) => servers.checkPage(page, issuer),
      trust,
      wait: io.wait,
      signal: interruption.signal,
    })
  } catch (error) {
    if (interruption.signal.aborted) return undefined
    throw error
  }
}

/** Signs in to a server through one of its issuers. */
export const login: Command = {
  help: `Usage: sbx-stdio login [URL] [--issuer ID] [--trust] [--json]

Signs in to a server: prints an address to open on any device and a code to enter there, and waits for you to confirm.
The sign-in is stored in a file that only you can read, is sent to this server only, and is renewed until you sign out.
It replaces an earlier sign-in to this server.

  URL                  the server (default: SBX_URL, or the only known one)
  --issuer ID          issuer to use, if the server has several
  --trust              skip the question when the server shares an issuer with another one, when its issuer is in a
                       private network, or when the page to confirm at is on another host than the issuer
`,
  options: { issuer: 'value', trust: 'flag' },
  parse: (options) => {
    const url = optionalUrl(options)
    const issuerId = options.value('issuer')
    const isTrusted = options.has('trust')
    return {
      ...(url === undefined ? {} : { url }),
      isAnonymous: true,
      run: async (context) => {
        const { api, env, io, isJson, origin, program, server } = context
        if (!isSecureUrl(origin))
          throw new UsageError(`Cannot sign in to ${origin}: the connection is not encrypted`, 'use https://')
        const { host } = new URL(origin)
        const info = selectIssuer(decodeAuth(await api.request('GET', '/api/auth')), issuerId)
        const trustHint = `if you trust it: ${program} login ${shellQuote(server)} --trust`
        const trust = { isTrusted, trustHint }
        checkEndpoints([info.issuer], { kind: 'server', url: origin, ...trust })
        io.info(`signing in to ${host} through ${printable(info.name)} (${new URL(info.issuer).host})`)
        const servers = new ServerTrust(context, isTrusted)
        const credential = await signInWith(info, { trust, servers }, context)
        if (credential === undefined) {
          io.info('canceled; you are not signed in')
          return exitCodeOfSignal('SIGINT')
        }
        try {
          await servers.checkToken(credential, info)
        } catch (error) {
          await revokeAtIssuer(credential)
          throw error
        }
        const name = await fetchName(credential)
        const problems = await replaceSignIn(new CredentialStore(env), credential)
        if (problems.length > 0) io.info(`the earlier sign-in may still be valid: ${problems.join('; ')}`)
        if (isJson) io.print(formatJson({ server, origin, name: name ?? null, issuer: info.id }))
        if ((env['SBX_TOKEN'] ?? '') !== '')
          io.info('SBX_TOKEN is set and takes precedence; unset it to use the sign-in')
        if (!isJson) io.info(`Signed in to ${host}${name === undefined ? '' : ` as ${name}`}`)
        return 0
      },
    }
  },
}
