{{/* What the objects are called in both namespaces. */}}
{{- define "mcp-sandboxd.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "mcp-sandboxd.labels" -}}
{{ include "mcp-sandboxd.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "mcp-sandboxd.selector" -}}
app.kubernetes.io/name: {{ include "mcp-sandboxd.name" . }}
{{- end }}

{{- define "mcp-sandboxd.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{/* The namespaces that sandboxes are in, as a list of YAML. */}}
{{- define "mcp-sandboxd.rooms" -}}
{{- $rooms := .Values.sandboxes.tenantNamespaces -}}
{{- if not (contains "{tenant}" .Values.sandboxes.namespace) -}}
{{- $rooms = prepend $rooms .Values.sandboxes.namespace -}}
{{- end -}}
{{ toYaml $rooms }}
{{- end }}

{{/* The settings that the chart decides; .Values.settings comes on top. */}}
{{- define "mcp-sandboxd.settings" -}}
{{- $name := include "mcp-sandboxd.name" . -}}
{{- $ns := .Release.Namespace -}}
SANDBOX_BACKEND: kubernetes
KUBERNETES_SANDBOX_NAMESPACE: {{ .Values.sandboxes.namespace | quote }}
KUBERNETES_AGENT_IMAGE: {{ include "mcp-sandboxd.image" . | quote }}
KUBERNETES_NETWORK_POLICY: {{ .Values.sandboxes.networkPolicy | quote }}
{{- if ne .Values.sandboxes.security "baseline" }}
KUBERNETES_SECURITY: {{ .Values.sandboxes.security | quote }}
{{- end }}
{{- with .Values.sandboxes.volumeClass }}
KUBERNETES_VOLUME_CLASS: {{ . | quote }}
{{- end }}
SANDBOX_IMAGE: {{ .Values.sandboxes.image | quote }}
ALLOWED_HOSTS: {{ printf "localhost,127.0.0.1,[::1],%s,%s.%s,%s.%s.svc,%s.%s.svc.cluster.local" $name $name $ns $name $ns $name $ns | quote }}
{{- if .Values.twoUsers }}
RUN_AS_WORKER: ""
{{- end }}
{{- if .Values.imagePullSecrets }}
KUBERNETES_PULL_SECRETS: {{ join "," .Values.imagePullSecrets | quote }}
{{- end }}
{{- end }}

{{- define "mcp-sandboxd.allSettings" -}}
{{- $all := mergeOverwrite (include "mcp-sandboxd.settings" . | fromYaml) .Values.settings -}}
{{ toYaml $all }}
{{- end }}
