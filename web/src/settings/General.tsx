import { useQuery } from '@tanstack/react-query'
import { settingsQuery } from '../chat/view/queries'
import { ErrorState } from '../ui/ErrorState'
import { Mono } from '../ui/Mono'
import { Box, Facts, Section } from '../ui/Page'
import { Spinner } from '../ui/Spinner'
import { useMe } from '../wire/me'
import { SettingsForm } from './SettingsForm'
import { Theme } from './Theme'

export function General() {
  const { me, may, query } = useMe()
  const settings = useQuery(settingsQuery)
  return (
    <>
      <Section title="You">
        {query.error !== null && (
          <ErrorState what="Your account could not be loaded." error={query.error} retry={() => void query.refetch()} />
        )}
        {query.isPending && <Spinner word="Loading your account…" />}
        {me !== undefined && (
          <Box className="p-4">
            <Facts
              facts={[
                ['User', me.auth === 'local' ? 'anyone on this machine' : me.user],
                ['Tenant', me.tenant],
                ['Roles', me.roles.join(', ') || 'none'],
                ['Permissions', me.permissions.join(', ') || 'none'],
              ]}
            />
          </Box>
        )}
      </Section>
      <Section title="Appearance">
        <Theme />
      </Section>
      <Section title="Defaults for agents">
        <p className="-mt-2 text-sm text-ink-soft">
          Agents that do not set their own values use these, from the next run on.
        </p>
        {settings.error !== null && (
          <ErrorState
            what="The settings could not be loaded."
            error={settings.error}
            retry={() => void settings.refetch()}
          />
        )}
        {settings.isPending && <Spinner word="Loading settings…" />}
        {settings.data !== undefined && (
          <SettingsForm key={JSON.stringify(settings.data)} settings={settings.data} may={may('tenant:write')} />
        )}
      </Section>
      {me !== undefined && (
        <Section title="Server">
          <Box className="p-4">
            <Facts
              facts={[
                ['Version', <Mono key="version">{me.version}</Mono>],
                ['Model', <Mono key="model">{me.model + (me.demo ? ' (demo: scripted answers)' : '')}</Mono>],
                ['Project', me.project === undefined ? 'none' : <Mono key="project">{me.project}</Mono>],
                ['Sign-in', me.auth === 'local' ? 'off: only this machine can connect' : 'required'],
              ]}
            />
          </Box>
        </Section>
      )}
    </>
  )
}
