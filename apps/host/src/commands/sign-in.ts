import { SandwireError, schema } from '@sandwire/protocol'
import type { InstallationPaths } from '../configuration.ts'
import { dataFolderAt } from '../data/data-folder.ts'
import { readHolder } from '../data/lock.ts'
import { isRunning } from '../data/process-identity.ts'

/** The host runs on this machine and answers from memory. */
const ANSWER_TIMEOUT_MS = 5_000

const linkSchema = schema.record({ link: schema.text(4096) })

function notRunning(dataFolder: string): SandwireError {
  return new SandwireError(
    'provider_unavailable',
    `Cannot create a sign-in link: no Sandwire is running with "${dataFolder}"\nhint: start it with npx sandwire up, or name its data folder with --data`,
  )
}

/** Requests a new sign-in link from the running host of a data folder. */
export async function requestSignInLink({ dataFolder }: InstallationPaths): Promise<string> {
  const holder = readHolder(dataFolderAt(dataFolder).lock)
  if (holder?.socket === undefined || !isRunning(holder)) throw notRunning(dataFolder)
  try {
    const response = await fetch('http://host/signin', {
      method: 'POST',
      unix: holder.socket,
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    })
    const answer = linkSchema.decode(await response.json())
    if (answer !== undefined) return answer.link
  } catch (cause) {
    throw new SandwireError(
      'provider_unavailable',
      'Cannot create a sign-in link: the host does not answer',
      {
        cause,
      },
    )
  }
  throw new SandwireError(
    'provider_unavailable',
    'Cannot create a sign-in link: the host has another version',
  )
}
