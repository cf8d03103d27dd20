import { limits, SandwireError } from '@sandwire/protocol'
import { readFileSync } from 'node:fs'
import { type Api, createApi } from '../server/api.ts'
import { hideArgument } from '../options/process-arguments.ts'
import { printable } from '../text/printable.ts'
import { parseShareLink, type ShareLink } from '../server/address.ts'
import { CredentialStore } from '../sign-in/credential-store.ts'
import { formatJson } from '../text/table.ts'
import { UsageError } from '../errors/errors.ts'
import type { Command, CommandContext, CommandIo, CommandOptions } from './command.ts'
import { decodeRedeemedGrant, type RedeemedGrant } from './responses.ts'
import { attachArguments, accessCommand } from '../text/command-line.ts'

function readLinkFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new UsageError(
      `Cannot read the link file "${file}"`,
      'give the file with the link: --link-file FILE',
    )
  }
}

/** Reads the link from a file, a prompt without echo, or stdin. */
async function readLink(options: CommandOptions, io: CommandIo): Promise<ShareLink> {
  const [given] = options.positionals
  if (given !== undefined) {
    hideArgument(given)
    throw new UsageError(
      'A share link is not accepted as an argument: other users can see it, and it stays in the shell history',
      'sbx-stdio join prompts for it; or use --link-file FILE',
    )
  }
  const file = options.value('link-file')
  if (file !== undefined) return parseShareLink(readLinkFile(file))
  if (io.promptSecret === undefined) return parseShareLink(await io.readStdin())
  const typed = io.promptSecret('Share link (not echoed): ')
  if (typed === undefined || typed.trim() === '') throw new UsageError('No share link was given')
  return parseShareLink(typed)
}

/** Stores the guest's token like a sign-in, until the last of its grants expires. */
function storeGuest(
  { origin }: ShareLink,
  { token, ...shared }: RedeemedGrant,
  { env, credential }: CommandContext,
): void {
  if (token === undefined) return
  const store = new CredentialStore(env)
  const previousExpiryMs = credential === 'guest' ? store.read(origin)?.expiresMs : undefined
  const expiresMs = Math.max(shared.expiresMs, previousExpiryMs ?? 0)
  store.write({ version: 1, origin, bearer: token, expiresMs })
}

/** Redeems the link. A guest whose access has ended gets a new guest account. */
async function redeemLink(
  link: ShareLink,
  guestName: string,
  { api, credential, env }: CommandContext,
): Promise<unknown> {
  const redeemAs = (client: Api, isNewGuest: boolean): Promise<unknown> =>
    client.request('POST', '/api/grants/redeem', {
      link: link.secret,
      ...(isNewGuest && guestName !== '' ? { name: guestName } : {}),
    })
  try {
    return await redeemAs(api, credential === 'none')
  } catch (error) {
    if (credential !== 'guest' || SandwireError.from(error).code !== 'unauthorized') throw error
    const anonymous = createApi({ origin: link.origin, bearer: () => Promise.resolve(undefined) })
    const response = await redeemAs(anonymous, true)
    new CredentialStore(env).remove(link.origin)
    return response
  }
}

async function joinAndAttach(
  link: ShareLink,
  name: string | undefined,
  context: CommandContext,
): Promise<number> {
  const { env, io, isJson, program } = context
  const guestName = name ?? printable(env['USER'] ?? '').slice(0, limits.MAX_NAME_CHARS)
  const redeemed = decodeRedeemedGrant(await redeemLink(link, guestName, context))
  storeGuest(link, redeemed, context)
  if (isJson) {
    const { token: _, ...rest } = redeemed
    io.print(formatJson(rest))
    return 0
  }
  const { owner, role, sandboxName, sandbox, session } = redeemed
  const what = typeof session === 'string' ? 'a session' : `sandbox ${printable(sandboxName ?? sandbox)}`
  io.info(`${printable(owner)} shared ${what} with you (role: ${printable(role)})`)
  const argv = attachArguments(link.origin, redeemed)
  if (argv !== undefined && io.attach !== undefined) return await io.attach(argv)
  const purpose = argv === undefined ? 'list its sessions' : 'attach with'
  io.info(`${purpose}: ${accessCommand(program, link.origin, redeemed)}`)
  return 0
}

/** Redeems a share link and attaches. */
export const join: Command = {
  help: `Usage: sbx-stdio join [--link-file FILE] [--name TEXT] [--json]

Uses a share link, then attaches to what it gives access to. The link is read from a prompt, where it is not echoed,
or from stdin; on the command line, other users could see it.

  --link-file FILE     file with the link
  --name TEXT          name that others see if you are not signed in (default: your user name)
`,
  options: { 'link-file': 'value', name: 'value' },
  parse: async (options, _env, io) => {
    const name = options.value('name')
    const link = await readLink(options, io)
    return { url: link.origin, run: (context) => joinAndAttach(link, name, context) }
  },
}
