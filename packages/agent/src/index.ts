export * from './api.ts'
export { AcpDriver } from './acp/acp-driver.ts'
export { ClaudeDriver, type ClaudeDriverOptions } from './claude/claude-driver.ts'
export {
  CLAUDE_STREAM_ENV,
  claudeCommand,
  claudeSettings,
  type ClaudeStreamOptions,
  claudeStreamArguments,
  claudeToolServers,
} from './claude/command.ts'
export {
  INITIALIZE_ID,
  initializeLine,
  interruptLine,
  settingLine,
  unsupportedLine,
  userLine,
} from './claude/outgoing.ts'
export { answerLine } from './claude/permission-requests.ts'
export { type ClaudeRequest, parseClaudeRequest } from './claude/stream-requests.ts'
export { claudeTui, seedClaudeSettings } from './claude/tui.ts'
export {
  type AgentDriver,
  type AgentSetting,
  type DriverEffect,
  type DriverInput,
  type Outcome,
} from './driver.ts'
export * from './event.ts'
export * from './journal.ts'
export { MAX_MCP_LINE_BYTES, type McpId } from './mcp/message.ts'
export { type McpEffect, type McpResult, McpServer } from './mcp/mcp-server.ts'
export { bytesOfKey, bytesOfText } from './mcp/terminal-keys.ts'
export * from './mcp/terminal-tools.ts'
export { isRecord, type Json, parseRecord, recordAt, textAt } from './json.ts'
export * from './plain-text.ts'
export type { ToolServer } from './tool-server.ts'
export { type Line, LineSplitter } from './line-splitter.ts'
export { REDACTED, Redactor } from './redact.ts'
export { titleOf } from './tool-title.ts'
