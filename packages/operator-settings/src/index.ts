export {
  type CommandSettings,
  validateCommandSettings,
  NO_COMMAND_SETTINGS,
} from './commands/command-settings.ts'
export { type Field, validateRecord } from './commands/judge-record.ts'
export { commandName, SHELLS } from './commands/command-name.ts'
export type { CommandTemplate, TemplateParameter } from './commands/judge-template.ts'
export { findValueProblem } from './commands/parameter-value.ts'
export { replacePlaceholders } from './commands/placeholders.ts'
export { findEmbedOriginProblem, MAX_EMBED_ORIGINS } from './embed-origin.ts'
export * from './identity/issuer-config.ts'
export * from './identity/presets.ts'
