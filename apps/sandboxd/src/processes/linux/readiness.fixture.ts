import { Readiness } from './readiness.ts'

export function openReadiness(options = { canUseAio: true }): Readiness {
  const readiness = Readiness.open(options)
  if (readiness === undefined) throw new Error('Nothing can be waited for: no descriptor is left')
  return readiness
}
