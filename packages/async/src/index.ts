export { KeyedSerializer } from './keyed-serializer.ts'
export { raceTimeout, withTimeout } from './with-timeout.ts'
