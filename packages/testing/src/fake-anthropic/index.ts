export {
  type Block,
  callTool,
  type FakeUsage,
  type Fault,
  inTurns,
  type ModelRequest,
  type Reply,
  say,
  type Script,
  withFaults,
} from './script.ts'
export { type FakeAnthropic, type FakeAnthropicOptions, openFakeAnthropic } from './server.ts'
