import { limits, SandwireError } from '@sandwire/protocol'
import { readFileSync } from 'node:fs'
import { type Api, createApi } from '../server/api.ts'
import { hideArgument } from '../options/process-arguments.ts'
import { printable } from '../text/printable.ts'
import { parseShareLink, type ShareLink } from '../server/address.ts'
import { CredentialStore } from '../sign-in/credential-store.ts'
import { formatJson } from '../text/table.ts'
import { UsageError } from '../options/words.ts'
import type { Command, CommandContext, CommandIo, CommandOptions } from './command.ts'
import { decodeRedeemed, type Redeemed } from './responses.ts'
import { attachArguments, accessCommand } from '../text/command-line.ts'

function readLinkFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new UsageError(
      `Cannot read the link file "${file}"`,
      'give the file that holds the link with --link-file FILE',
    )
  }
}

/** The link, from where nobody else can see it. */
async function readLink(words: CommandOptions, io: CommandIo): Promise<ShareLink> {
  const [given] = words.positionals
  if (given !== undefined) {
    hideArgument(given)
    throw new UsageError(
      'A link on the command line can be read by others on this machine, and stays in the history of the shell',
      'sbx-stdio join asks for it; or give it with --link-file FILE',
    )
  }
  const file = words.one('link-file')
  if (file !== undefined) return parseShareLink(readLinkFile(file))
  if (io.promptSecret === undefined) return parseShareLink(await io.readStdin())
  const typed = io.promptSecret('Link (it is not shown): ')
  if (typed === undefined || typed.trim() === '') throw new UsageError('No link is given')
  return parseShareLink(typed)
}

/** Keeps a guest's credential like a sign-in, so that the guest can come back, for as long as any of what it opens. */
function storeGuest(
  { origin }: ShareLink,
  { token, ...shared }: Redeemed,
  { env, credential }: CommandContext,
): void {
  if (token === undefined) return
  const store = new CredentialStore(env)
  const before = credential === 'guest' ? store.read(origin)?.expiresMs : undefined
  const expiresMs = Math.max(shared.expiresMs, before ?? 0)
  store.write({ version: 1, origin, bearer: token, expiresMs })
}

/** Exchanges the link. A guest whose access is over comes as a new one: that is what the link is for. */
async function exchange(
  link: ShareLink,
  name: string,
  { api, credential, env }: CommandContext,
): Promise<unknown> {
  const ask = (as: Api, isNew: boolean): Promise<unknown> =>
    as.request('POST', '/api/grants/redeem', { link: link.secret, ...(isNew && name !== '' ? { name } : {}) })
  try {
    return await ask(api, credential === 'none')
  } catch (error) {
    if (credential !== 'guest' || SandwireError.from(error).code !== 'unauthorized') throw error
    const anonymous = createApi({ origin: link.origin, bearer: () => Promise.resolve(undefined) })
    const answer = await ask(anonymous, true)
    new CredentialStore(env).remove(link.origin)
    return answer
  }
}

async function redeem(link: ShareLink, name: string | undefined, context: CommandContext): Promise<number> {
  const { env, io, isJson, program } = context
  const guest = name ?? printable(env['USER'] ?? '').slice(0, limits.MAX_NAME_CHARS)
  const redeemed = decodeRedeemed(await exchange(link, guest, context))
  storeGuest(link, redeemed, context)
  if (isJson) {
    const { token: _, ...rest } = redeemed
    io.print(formatJson(rest))
    return 0
  }
  const { owner, role, sandboxName, sandbox, session } = redeemed
  const what = typeof session === 'string' ? 'a session' : `the sandbox ${printable(sandboxName ?? sandbox)}`
  io.say(`${printable(owner)} shares ${what} with you; you are a ${printable(role)}`)
  const words = attachArguments(link.origin, redeemed)
  if (words !== undefined && io.attach !== undefined) return await io.attach(words)
  const why = words === undefined ? 'see what runs there' : 'go there with'
  io.say(`${why}: ${accessCommand(program, link.origin, redeemed)}`)
  return 0
}

/** Uses a link to something shared, and goes there. */
export const join: Command = {
  help: `Usage: sbx-stdio join [--link-file FILE] [--name TEXT] [--json]

Uses a link that somebody gave you, then attaches to what it shares. The link is asked for on a terminal, where it is not
shown, or read from standard input; on the command line others could read it.

  --link-file FILE     file that holds the link
  --name TEXT          how others see you, if you are not signed in there (default: your user name)
`,
  options: { 'link-file': 'once', name: 'once' },
  read: async (words, _env, io) => {
    const name = words.one('name')
    const link = await readLink(words, io)
    return { url: link.origin, run: (context) => redeem(link, name, context) }
  },
}
