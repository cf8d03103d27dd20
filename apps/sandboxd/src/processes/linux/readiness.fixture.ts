import { Readiness } from './readiness.ts'

export function openReadiness(options = { canUseAio: true }): Readiness {
  const readiness = Readiness.open(options)
  if (readiness === undefined) throw new Error('Cannot open an epoll set: out of descriptors')
  return readiness
}
