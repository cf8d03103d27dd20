import { z } from 'zod'

const MAX_URL_CHARS = 2_048

/** True for `https://HOST/PATH` without credentials, query and fragment. */
function isRepositoryUrl(text: string): boolean {
  if (text.length > MAX_URL_CHARS || !URL.canParse(text)) return false
  const { protocol, username, password, search, hash, pathname } = new URL(text)
  return (
    protocol === 'https:' &&
    [username, password, search, hash].every((part) => part === '') &&
    pathname !== '/'
  )
}

const REPOSITORY_RULE = 'expected https://HOST/PATH without credentials'

export const repositorySchema = z.string({ error: REPOSITORY_RULE }).refine(isRepositoryUrl, REPOSITORY_RULE)

/** Not an option of git, and no revision range. */
const REF = /^[A-Za-z0-9](?:[A-Za-z0-9._/@+-]{0,249}[A-Za-z0-9])?$/
const REF_RULE = 'expected a branch, a tag or a commit'

export const refSchema = z
  .string({ error: REF_RULE })
  .refine((text) => REF.test(text) && !text.includes('..'), REF_RULE)
