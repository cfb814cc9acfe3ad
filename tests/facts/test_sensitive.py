"""Which names hold secrets, which only look so, and what a pattern could be expanded to."""

from __future__ import annotations

import re
import warnings
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.readers.paths import path_fact
from agenttool_otel.readers.paths.globs import wild
from agenttool_otel.readers.paths.sensitive import sensitive_class

SECRETS = """
id_rsa~ #.env# .id_rsa.swp credentials.json.bak secrets.yml.old .env.save server.key.orig .config/sops/age/keys.txt
x.keychain-db a.kwl private_key wg0.conf .flaskenv .dev.vars env.production kubeconfig.yaml .oci/config
.config/hcloud/cli.toml .config/helm/registry.json .vault_pass.txt .snowsql/config .huggingface/token
.cache/huggingface/token x-firebase-adminsdk-1.json .m2/settings.xml .m2/settings-security.xml
.gradle/gradle.properties .docker/config.json .cloudflared/cert.pem krb5cc_0 a.remmina x.binarycookies
.config/Signal/x tdata/key .zhistory .foo_history .bitcoin/wallet passwords.txt token.json .api_key groups.xml
serviceaccount/token vault_pass.txt vault-password ansible_vault_pass .vault-password group_vars/vault.yml.decrypted
app/keystore.properties .mvn/settings-security.xml wallet/cwallet.sso Config/Secrets.xcconfig secrets/api_token
password creds.json aws_credentials aws-credentials.txt gh_token .hf_token root-token.txt openai_api_key
anthropic_key.txt secret.txt values-secrets.yaml secrets.prod.yaml prod.secret.exs user-secrets.json chap-secrets
deploy_key a.pkcs12 validator-keypair.json mongo-keyfile unseal-keys.json gitlab-recovery-codes.txt seed-phrase.txt
wg1.conf serviceAccountKey.json gcp-service-key.json storage_state.json playwright/.auth/user.json
pgbouncer/userlist.txt robomongo.json .irssi/config .sops/age/keys.txt passphrase.txt sealed-secrets-key.yaml netrc
x.agilekeychain/a x.opvault my-credentials.csv client-cert-key.pem ca-key.pem private.pem server.pem
secrets/db_password group_vars/vault.yml portal/local_settings.py settings.local.py .Renviron r/x/.Renviron
slurm/x509up_u1000 .irods/.irodsA .cdsapirc .apptainer/docker-config.json .julia/servers/a/auth.toml
.jupyter/jupyter_server_config.json e2e/.auth/admin.json cypress.env.json http-client.private.env.json
prod.postman_environment.json admin.conf talosconfig vault/init-output.txt sops/keys.txt gitlab-runner/config.toml
upload.jks.b64 pc-api-1234-567.json my-project-0123456789ab.json sentry.properties arduino_secrets.h
wifi_credentials.h .wifi_credentials.h.swp root-ec-p256.pem auth_user.json slurmdbd.conf jwt_private_key.json
ssh-key.b64 host_key.hex a.jwk a.agekey db.token play-store-key.json api-keys.csv bitwarden_export_2026.json
prod.decrypt.private.php stripe_secret.json refresh_token new_db_password refresh-token root-ec256.pem
app-service-account.json acme.json db/orapwKIS .dvc/config.local
"""
HARMLESS = """
locales/en/auth.json i18n/auth.json id_rsa.pub id_ed25519.pub public.pem my_public_key.pem pubkey.pem ca-cert.pem
cacerts.pem intermediate.pem roots.pem client-cert.pem archive-keyring.gpg id_rsa.md credentials.example.json
example.tfvars charts/x/templates/secret.yaml templates/secrets.yaml service_account_schema.json data/cvs/john.pdf
sealed-secret.yaml external-secrets.yml special_tokens_map.json added_tokens.json tokenizer.json tokenizer_config.json
auth_token.py token.ts password-policy.md password_reset.html secret_santa.py api_keys.go credentials.rb.md
keyboard.json test_tokens.py monkey.txt turkey.csv keypair.go secrets_manager.tf secretary.csv tokenization.txt
passwordless.yaml credentials.yml.enc deploy_key.pub forget-password.tsx src/secrets/index.ts secrets/README.md
secrets/password_policy.py src/* **/*.py *.json src/**/* [id].tsx routes/[...slug].tsx tests/test_*.py src/?.c
{a,b}.ts internal/kube/config/config.go pkg/docker/secrets/secrets.go secrets/README.txt foreign_key.txt
root_tokenizer.py vault-keys_test.go docs/vault-keys.md seed_phrase_test.go forgot_password.txt reset_password.txt
10k-most-common-passwords.txt get-token key.snk tests/test_ecdsa tokens.txt detect-secrets.yml generic-secrets.yml
rbac/credentials-role.yaml serviceaccount_types.json change-passwd decode-token pull-secret.yaml user-get-started.md
kubeconfig.go kubeconfig_test.go include/grpcpp/security/credentials.h vault_init.py isrg-root-x1.pem rsa-root-ca.pem
empty_key.json i18n/keys/key.json npm-token.md hash-0123456789abcd.json 550e8400-e29b-41d4-a716-446655440000.json
chunk-0123456789ab.json weights/best.pth vault/init.go push-secret.yaml wallet.json keys.txt icons/1password.json
shader.pass monkeyfile openapi/host-key.yml reset-password user_creds.py cookies.ts storage_state.py keyfile.go
private_key.py SigningKey.java session_state.go tokens.css
"""
DOTFILES = """
.python-version .node-version/x.sh .docker/Dockerfile .env-example .env_sample .env.local.example
.env.production.example .env.schema
"""
OBEYED = """
.mvn/extensions.xml .cargo/config.toml .Rprofile .ghci .bazelrc .pnpmfile.cjs lib/site-packages/evil.pth App.xcscheme
mise.toml gradle/wrapper/gradle-wrapper.properties lefthook.toml .lintstagedrc.json bitbucket-pipelines.yml .drone.yml
.ipython/profile_default/startup/a.py .jupyter/jupyter_config.py .gitlab-ci-deploy.yml Jenkinsfile.release
"""
INERT = """
.gitignore web/.gitignore .editorconfig .dockerignore .nvmrc .mailmap .clang-format .gitkeep .prettierignore
"""
PATTERNS = ".en* .e?v .[e]nv {.env,x} .s*/id* conf/.e* .config/gc* id_[r]sa id_{rsa,dsa} *.pe[m] .* [.]env cred*.json"


@pytest.mark.parametrize("name", SECRETS.split())
def test_secrets_are_known(name: str) -> None:
    assert sensitive_class(f"/proj/{name}", "/proj") in ("key", "credential")


@pytest.mark.parametrize("name", HARMLESS.split())
def test_what_only_looks_like_a_secret_is_none(name: str) -> None:
    assert sensitive_class(f"/proj/{name}", "/proj") is None


@pytest.mark.parametrize("name", DOTFILES.split())
def test_a_dotfile_that_is_an_example_is_a_dotfile_and_no_more(name: str) -> None:
    assert sensitive_class(f"/proj/{name}", "/proj") == "dotfile"


@pytest.mark.parametrize("name", OBEYED.split())
def test_what_programs_obey_is_known(name: str) -> None:
    assert sensitive_class(f"/proj/{name}", "/proj") in ("agent_config", "credential")


@pytest.mark.parametrize("name", INERT.split())
def test_a_dotfile_that_makes_nothing_run_is_an_ordinary_file(name: str) -> None:
    assert sensitive_class(f"/proj/{name}", "/proj") is None


@pytest.mark.parametrize("name", PATTERNS.split())
def test_a_pattern_that_may_match_a_secret_counts_as_the_secret(name: str) -> None:
    assert sensitive_class(f"/proj/{name}", "/proj") in ("key", "credential")


def test_a_pattern_of_absurdly_many_wildcards_is_not_expanded() -> None:
    assert sensitive_class("/proj/" + "a*/" * 40, "/proj") == "credential"


@pytest.mark.parametrize(
    "name", [".agenttool/approvals.db", ".agenttool/approvals/1.json", "approvals.db-wal"]
)
def test_an_approval_store_in_the_packages_folder_is_one(name: str) -> None:
    assert sensitive_class(f"/proj/{name}", "/proj") == "approval"
    assert sensitive_class("/proj/.agenttool/rules.rego", "/proj") == "policy"


@pytest.mark.parametrize(
    "name", ["repo.git/hooks/post-commit", "repo.git/config", "CVS/Root", "src/CVS/Entries"]
)
def test_version_control_files_are_known_by_their_folder(name: str) -> None:
    assert sensitive_class(f"/proj/{name}", "/proj") == "vcs"


@pytest.mark.parametrize("name", ["cookies", "credentials", "shadow", "kubeconfig", "crypto_rsa"])
def test_a_folder_is_no_file_of_secrets(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    env = FactEnvironment(roots=(str(tmp_path),), cwd=str(tmp_path))
    assert path_fact(name, argument="/p", access="read", surroundings=env)["sensitive"] is None
    (tmp_path / name).rmdir()
    assert path_fact(name, argument="/p", access="read", surroundings=env)["sensitive"] in (
        "key",
        "credential",
    )
    inside = FactEnvironment(roots=(str(tmp_path / name),), cwd=str(tmp_path / name))
    assert path_fact(".", argument="/p", access="read", surroundings=inside)["sensitive"] is None


@pytest.mark.parametrize(
    "text",
    ["%ef%bc%8e%ef%bc%8e/x", "a%0ab", "a%e2%80%aeb", "&#46;&#46;/x", "&period;&sol;x", "%252e/x"],
)
def test_encoded_dots_controls_and_hidden_characters_are_told(text: str) -> None:
    env = FactEnvironment(roots=("/srv",), cwd="/srv")
    assert path_fact(text, argument="/p", access="read", surroundings=env)["encoded"] is True


@pytest.mark.parametrize(
    "text", ["a%20b.txt", "100%.txt", "R&D/plan.md", "a&b", "50%25.txt", "caf%C3%A9"]
)
def test_other_percent_signs_and_ampersands_are_not(text: str) -> None:
    env = FactEnvironment(roots=("/srv",), cwd="/srv")
    assert path_fact(text, argument="/p", access="read", surroundings=env)["encoded"] is False


@pytest.mark.parametrize("text", ["%~dp0x", "$[1+1]", "%~f1"])
def test_more_variables_of_shells_are_told(text: str) -> None:
    env = FactEnvironment(roots=("/srv",), cwd="/srv")
    assert path_fact(text, argument="/p", access="read", surroundings=env)["variables"] is True


@pytest.mark.parametrize("text", ["a\\ud800", "x/\\udce9.txt"])
def test_what_may_have_been_a_lone_surrogate_is_rejected(text: str) -> None:
    from agenttool_otel.readers.urls import url_fact

    env = FactEnvironment(roots=("/srv",), cwd="/srv")
    assert (
        path_fact(text, argument="/p", access="read", surroundings=env)["rejected"] == "surrogate"
    )
    assert (
        url_fact(f"https://a.example/{text}", argument="/u", surroundings=env)["rejected"]
        == "surrogate"
    )


@settings(max_examples=500)
@example(letters="--a", name=":")
@example(letters="+--", name=",")
@given(
    letters=st.text("[]!^a-z&|~#:.", max_size=6),
    name=st.text("[]!^abz-&|~#:.", min_size=1, max_size=1),
)
def test_odd_sets_in_globs_match_no_less_and_warn_of_nothing(letters: str, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = wild.__wrapped__(f"[{letters}]")
    if re.fullmatch(r"[^\[\]!^]+", letters) and fnmatchcase(name, f"[{letters}]"):
        assert found.matches.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["scripts/git-hooks/pre-push", ".githooks/x", "hooks/commit-msg", "lefthook.yml"]
)
def test_what_git_may_run_is_asked_about_wherever_it_lies(name: str) -> None:
    assert sensitive_class(f"/proj/{name}", "/proj") == "agent_config"
