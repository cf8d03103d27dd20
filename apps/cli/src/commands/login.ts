import { type ErrorCode, SandwireError, shape } from '@sandwire/protocol'
import { HintedError } from '../errors/errors.ts'
import { createApi } from '../server/api.ts'
import { openRecord, decodeResponse } from '../server/response.ts'
import { shellQuote } from '@sandwire/shell-quote'
import { exitCodeOfSignal } from '../errors/exit-code.ts'
import { printable } from '../text/printable.ts'
import { selectIssuer, decodeAuth, type SignInIssuer } from '../sign-in/auth-info.ts'
import { type Credential, isJwt } from '../sign-in/credential.ts'
import { CredentialStore } from '../sign-in/credential-store.ts'
import type { DevicePrompt } from '../sign-in/device-sign-in.ts'
import { type EndpointSource, checkEndpoints } from '../sign-in/endpoint-policy.ts'
import { replaceSignIn } from '../sign-in/stored-sign-in.ts'
import { isSecureUrl } from '../server/address.ts'
import { formatJson } from '../text/table.ts'
import { UsageError } from '../options/words.ts'
import type { Command, CommandContext } from './command.ts'
import { optionalUrl } from './positionals.ts'

/** The server does not want what the issuer gave. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set(['unauthorized', 'forbidden', 'no_issuer'])

const REFUSED_HINT = 'ask whoever runs the server to check the audience and the scopes of its issuer'
/** How a server speaks of what was issued before a sign-out or the deletion of the account, give or take a minute. */
const ENDED = /\bthe sign-in has ended$/
const JUST_ENDED = 'Cannot sign in: the account or its sign-in was ended just now'
const JUST_ENDED_HINT = 'try again in a minute'
const UNREADABLE = 'Cannot sign in: the issuer gave a token that the server cannot read'
const UNREADABLE_HINT =
  'whoever runs the server has to ask the issuer for another, with "resource" or "bearer": "id_token" in its settings'

type Trust = Pick<EndpointSource, 'isTrusted' | 'trustHint'>

const nameShape = openRecord({ name: shape.text(1024) })

function formatPrompt({ address, code, completeAddress }: DevicePrompt): string {
  const both = completeAddress === undefined ? '' : `  or open   ${completeAddress}\n`
  return `\n  Open      ${address}\n  and type  ${code}\n${both}\n`
}

/** Who somebody is there; undefined when the server cannot be asked now. */
async function askName({ origin, bearer, renewal }: Credential): Promise<string | undefined> {
  const api = createApi({ origin, bearer: () => Promise.resolve(bearer) })
  try {
    return printable(decodeResponse(nameShape, await api.request('GET', '/api/whoami')).name)
  } catch (caught) {
    const error = SandwireError.from(caught)
    if (!REFUSALS.has(error.code)) return undefined
    if (ENDED.test(error.message)) throw new HintedError('forbidden', JUST_ENDED, JUST_ENDED_HINT)
    if (renewal?.bearerKind === 'access_token' && !isJwt(bearer))
      throw new HintedError('forbidden', UNREADABLE, UNREADABLE_HINT)
    const what = `Cannot sign in: the server does not accept it: ${error.message}`
    throw new HintedError('forbidden', what, REFUSED_HINT)
  }
}

async function signInWith(
  info: SignInIssuer,
  trust: Trust,
  { io, origin }: CommandContext,
): Promise<Credential | undefined> {
  using interruption = io.openInterruption()
  // Loaded here, because other commands need none of it.
  const { signIn } = await import('../sign-in/device-sign-in.ts')
  const show = (prompt: DevicePrompt): void => {
    io.show(formatPrompt(prompt))
    io.say('waiting for you to agree there (Ctrl+C stops)')
    // Without the code: other users of this machine see what a browser is started with.
    io.openBrowser(prompt.address)
  }
  const onOtherHosts = (hosts: readonly string[]): void =>
    io.say(`the sign-in goes to ${hosts.join(' and ')} as well`)
  try {
    return await signIn(origin, info, {
      show,
      onOtherHosts,
      trust,
      wait: io.wait,
      signal: interruption.signal,
    })
  } catch (error) {
    if (interruption.signal.aborted) return undefined
    throw error
  }
}

/**
 * A server says itself whom to sign in with. One that names the issuer and client of another server could show there what
 * it is given here, so somebody has to want that.
 */
async function checkOthers(info: SignInIssuer, isTrusted: boolean, context: CommandContext): Promise<void> {
  const { env, io, origin, server } = context
  const store = new CredentialStore(env)
  const other = store.origins().find((each) => each !== origin && isSameClient(store.read(each), info))
  if (other === undefined || isTrusted) return
  const { host } = new URL(origin)
  io.say(`${host} signs in like ${other}: what it gets would be good there too`)
  if (await io.confirm?.(`Do you trust ${host} with that?`)) return
  throw new UsageError(`Not signed in to ${host}`, `sbx-stdio login ${shellQuote(server)} --trust`)
}

function isSameClient(credential: Credential | undefined, { issuer, clientId }: SignInIssuer): boolean {
  return credential?.renewal?.issuer === issuer && credential.renewal.clientId === clientId
}

/** Signs in to a server with one of its issuers. */
export const login: Command = {
  help: `Usage: sbx-stdio login [URL] [--issuer ID] [--trust] [--json]

Signs in to a server: shows an address to open on any device and a code to type there, and waits until you have agreed.
What it gets is stored in a file that only you can read, is used by every command for this server and for no other, and
is renewed by itself until you sign out. An earlier sign-in at this server ends.

  URL                  the server (default: SBX_URL, or the only one that is known)
  --issuer ID          whom to sign in with, where the server knows several
  --trust              do not ask, although what the server gets would be good at another one too, or although its
                       issuer is in a private network and the server is not
`,
  options: { issuer: 'once', trust: 'flag' },
  read: (words) => {
    const url = optionalUrl(words)
    const asked = words.one('issuer')
    const isTrusted = words.has('trust')
    return {
      ...(url === undefined ? {} : { url }),
      isAnonymous: true,
      run: async (context) => {
        const { api, env, io, isJson, origin, program, server } = context
        if (!isSecureUrl(origin))
          throw new UsageError(
            `Cannot sign in to ${origin}: whoever is on the way could read it`,
            'use https://',
          )
        const { host } = new URL(origin)
        const info = selectIssuer(decodeAuth(await api.request('GET', '/api/auth')), asked)
        const trustHint = `if that is meant: ${program} login ${shellQuote(server)} --trust`
        const trust = { isTrusted, trustHint }
        checkEndpoints(Object.values({ issuer: info.issuer, ...info.endpoints }), {
          is: 'server',
          url: origin,
          ...trust,
        })
        await checkOthers(info, isTrusted, context)
        io.say(`signing in to ${host} with ${printable(info.name)} (${new URL(info.issuer).host})`)
        const credential = await signInWith(info, trust, context)
        if (credential === undefined) {
          io.say('stopped; you are not signed in')
          return exitCodeOfSignal('SIGINT')
        }
        const name = await askName(credential)
        const untold = await replaceSignIn(new CredentialStore(env), credential)
        if (untold.length > 0) io.say(`the earlier sign-in may go on: ${untold.join('; ')}`)
        if (isJson) io.print(formatJson({ server, origin, name: name ?? null, issuer: info.id }))
        if ((env['SBX_TOKEN'] ?? '') !== '') io.say('SBX_TOKEN is set and comes before it: unset it')
        if (!isJson) io.say(`Signed in to ${host}${name === undefined ? '' : ` as ${name}`}`)
        return 0
      },
    }
  },
}
