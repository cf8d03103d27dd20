import { SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { readBoundedJson } from '../http/read-bounded.ts'
import type { PullRequest } from './published.ts'

export interface GithubApi {
  readonly apiUrl: string
  readonly token: string
  readonly fetchUpstream: (url: string, init: RequestInit) => Promise<Response>
}

const REQUEST_MS = 30_000
const MAX_RESPONSE_BYTES = 2 * 1024 * 1024
const MAX_REASON_CHARS = 300

const pullSchema = z.object({ number: z.number(), html_url: z.string() })
const repositorySchema = z.object({ default_branch: z.string() })
const refSchema = z.object({ ref: z.string() })
const errorSchema = z.object({
  message: z.string(),
  errors: z.array(z.object({ message: z.string().optional() })).optional(),
})

/** Opens a pull request for a branch; one that is open for it already is returned. */
export async function openPullRequest(
  api: GithubApi,
  {
    path,
    branch,
    base,
    title,
    body,
  }: {
    /** `OWNER/NAME`. */
    readonly path: string
    readonly branch: string
    /** What the run worked on; merged into the default branch unless it is a branch. */
    readonly base: string | undefined
    readonly title: string
    readonly body: string
  },
): Promise<PullRequest> {
  const [owner = ''] = path.split('/')
  const head = encodeURIComponent(`${owner}:${branch}`)
  const open = await request(api, `/repos/${path}/pulls?state=open&head=${head}`)
  const [known] = z.array(pullSchema).safeParse(open.value).data ?? []
  if (open.status === 200 && known !== undefined) return toPullRequest(known)
  const target = await targetBranch(api, path, base)
  const made = await request(api, `/repos/${path}/pulls`, { title, body, head: branch, base: target })
  const parsed = pullSchema.safeParse(made.value)
  if (made.status === 201 && parsed.success) return toPullRequest(parsed.data)
  throw refused(made)
}

async function targetBranch(api: GithubApi, path: string, base: string | undefined): Promise<string> {
  if (base !== undefined) {
    const found = await request(api, `/repos/${path}/git/ref/heads/${base}`)
    if (found.status === 200 && refSchema.safeParse(found.value).data?.ref === `refs/heads/${base}`)
      return base
  }
  const repository = await request(api, `/repos/${path}`)
  const parsed = repositorySchema.safeParse(repository.value)
  if (repository.status === 200 && parsed.success) return parsed.data.default_branch
  throw refused(repository)
}

function toPullRequest({ number, html_url: url }: z.infer<typeof pullSchema>): PullRequest {
  return { number, url }
}

interface Answer {
  readonly status: number
  readonly value: unknown
}

async function request(
  { apiUrl, token, fetchUpstream }: GithubApi,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const signal = AbortSignal.timeout(REQUEST_MS)
  try {
    const response = await fetchUpstream(`${apiUrl}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      signal,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/vnd.github+json',
        'content-type': 'application/json',
        'user-agent': 'sandwire',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, value: await readBoundedJson(response, MAX_RESPONSE_BYTES, signal) }
  } catch (cause) {
    throw new SandwireError(
      'link_lost',
      'The branch is pushed, but the pull request is not open: GitHub does not respond. Publish again to open it',
      { cause },
    )
  }
}

function refused({ status, value }: Answer): SandwireError {
  const { message = '', errors = [] } = errorSchema.safeParse(value).data ?? {}
  const reason = [message, ...errors.map((error) => error.message ?? '')]
    .filter((text) => text !== '')
    .join(': ')
  const shown = reason.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, MAX_REASON_CHARS)
  return new SandwireError(
    'publish_refused',
    `The branch is pushed, but the pull request is not open: GitHub refuses it (${status})${shown === '' ? '' : `: ${shown}`}`,
  )
}
