export { type ForwardOptions, openForward } from './socket-forward.ts'
