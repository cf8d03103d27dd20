import type { Usage } from '../api/usage.ts'
import { formatSize } from '../files/file-kind.ts'
import { shellTexts } from '../texts/shell.ts'

/** A line of the usage dialog. */
export interface UsageRow {
  readonly name: string
  readonly used: string
  readonly limit: string
}

type Resource = keyof Usage['account']

const RESOURCES: readonly Resource[] = [
  'sandboxes',
  'running',
  'sessions',
  'memoryBytes',
  'milliCpus',
  'pids',
  'diskBytes',
  'storedBytes',
]

function format(resource: Resource, amount: number): string {
  if (resource.endsWith('Bytes')) return formatSize(amount)
  return String(resource === 'milliCpus' ? amount / 1000 : amount)
}

/** The resources that the server counts, in a fixed order. */
export function usageRows({ account }: Usage): readonly UsageRow[] {
  return RESOURCES.flatMap((resource) => {
    const use = account[resource]
    if (use === undefined) return []
    const limit = use.limit === null ? shellTexts.usage.noLimit : format(resource, use.limit)
    return [{ name: shellTexts.usage.resources[resource], used: format(resource, use.used), limit }]
  })
}
