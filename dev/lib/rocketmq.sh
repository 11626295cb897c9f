# shellcheck shell=bash
# RocketMQ from its jars: a name server and one broker, that live and die together.
# Ports: BASE is the name server's, BASE+4 the broker's, who also takes the one two
# below and, for replication, the one above.
#
# Version 4 listens on every address and has no say in that; both run as nobody.

rocketmq_version() {
	case $KIND in
	rocketmq4) echo 4.9.7 ;;
	rocketmq5) echo 5.5.0 ;;
	esac
}

rocketmq_jars() { echo "$cache/rocketmq-$(rocketmq_version)"; }

rocketmq_missing() {
	command -v java >/dev/null || echo default-jre-headless
	[[ -e $(rocketmq_jars) ]] || command -v mvn >/dev/null || echo maven
}

rocketmq_prepare() { with_lock "$KIND" rocketmq_fetch; }

# A throw-away pom lets Maven resolve what the two servers and mqadmin need.
rocketmq_fetch() {
	local jars part
	jars=$(rocketmq_jars)
	[[ ! -e $jars ]] || return 0
	say "fetching RocketMQ $(rocketmq_version) from Maven Central"
	rm -rf "$jars.new"
	mkdir "$jars.new"
	{
		echo '<project><modelVersion>4.0.0</modelVersion><groupId>bide</groupId><artifactId>jars</artifactId><version>1</version><dependencies>'
		for part in namesrv broker tools; do
			printf '<dependency><groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-%s</artifactId><version>%s</version></dependency>\n' \
				"$part" "$(rocketmq_version)"
		done
		echo '</dependencies></project>'
	} >"$jars.new/pom.xml"
	mvn -q -B -f "$jars.new/pom.xml" dependency:copy-dependencies -DoutputDirectory=. -DincludeScope=runtime \
		>"$jars.log" 2>&1 || {
		tail -n 5 "$jars.log" >&2
		die "no RocketMQ without Maven Central (make test ROCKETMQ=off does without); Maven's whole log is $jars.log"
	}
	mv "$jars.new" "$jars"
}

rocketmq_create() {
	mkdir -p "$DIR/data/conf"
	printf 'listenPort=%s\nbindAddress=127.0.0.1\n' "$BASE" >"$DIR/data/namesrv.conf"
	rocketmq_settings >"$DIR/data/broker.conf"
	# Version 4 does not start without these; version 5 ignores them.
	local file
	for file in broker namesrv tools; do
		cat >"$DIR/data/conf/logback_$file.xml" <<-XML
			<configuration>
			  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
			    <encoder><pattern>%d %-5p %logger{0} %m%n</pattern></encoder>
			  </appender>
			  <root level="WARN"><appender-ref ref="out"/></root>
			</configuration>
		XML
	done
	give nobody:nogroup "$DIR/data"
}

# File sizes for tests: the defaults take a gigabyte at once.
rocketmq_settings() {
	cat <<-CONF
		brokerClusterName=DefaultCluster
		brokerName=broker-a
		brokerId=0
		namesrvAddr=127.0.0.1:$BASE
		brokerIP1=127.0.0.1
		brokerIP2=127.0.0.1
		bindAddress=127.0.0.1
		listenPort=$((BASE + 4))
		haListenPort=$((BASE + 5))
		storePathRootDir=$DIR/data/store
		storePathCommitLog=$DIR/data/store/commitlog
		mappedFileSizeCommitLog=16777216
		mappedFileSizeConsumeQueue=60000
		mappedFileSizeTimerLog=1048576
		maxIndexNum=1000
		maxHashSlotNum=4000
		diskMaxUsedSpaceRatio=95
		diskSpaceWarningLevelRatio=98
	CONF
	cat "$DIR/settings"
}

# rocketmq_words: fills `words` with a Java that has the version's jars and may
# look where they need to on JDK 9 and later.
rocketmq_words() {
	local prefix
	becoming nobody nogroup
	words=("${prefix[@]}" env -i "PATH=$PATH" LANG=C.UTF-8
		"ROCKETMQ_HOME=$DIR/data" "NAMESRV_ADDR=127.0.0.1:$BASE" "$@"
		java -cp "$(rocketmq_jars)/*" "-Duser.home=$DIR/data" "-Drocketmq.home.dir=$DIR/data"
		-Drocketmq.broker.diskSpaceWarningLevelRatio=0.98
		--add-exports=java.base/sun.nio.ch=ALL-UNNAMED
		--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED
		--add-opens=java.base/sun.nio.ch=ALL-UNNAMED
		--add-opens=java.base/java.nio=ALL-UNNAMED)
}

# A private instance is there to be broken and started again, which takes two
# thirds of the processor time with the simplest compiler and collector. The
# shared ones serve benchmarks.
rocketmq_command() {
	local words java=()
	[[ $NAME == "$KIND" ]] || java=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC)
	# shellcheck disable=SC2016 # the inner shell's own variables
	rocketmq_words bash -c '
		"$@" -Xmx128m org.apache.rocketmq.namesrv.NamesrvStartup -c data/namesrv.conf &
		namesrv=$!
		until (exec 3<>"/dev/tcp/${NAMESRV_ADDR/://}") 2>/dev/null; do
			kill -0 $namesrv || exit
			sleep 0.1
		done
		"$@" -Xms256m -Xmx512m -XX:MaxDirectMemorySize=512m org.apache.rocketmq.broker.BrokerStartup -c data/broker.conf &
		broker=$!
		trap "kill $broker; wait $broker; kill $namesrv" TERM
		wait -n
		kill $broker $namesrv 2>/dev/null
		wait' rocketmq
	command=("${words[@]}" "${java[@]}")
}

rocketmq_ready() { grep -q '^The broker\[.*boot success' "$DIR/log"; }

rocketmq_report() { printf 'NAMESRV=127.0.0.1:%s\nBROKER=127.0.0.1:%s\n' "$BASE" "$((BASE + 4))"; }

rocketmq_environment() {
	export_line "BIDE_TEST_${KIND^^}_NAMESRV" "127.0.0.1:$BASE"
	export_line "BIDE_TEST_${KIND^^}_BROKER" "127.0.0.1:$((BASE + 4))"
}

rocketmq_ctl() {
	local words
	rocketmq_words
	(cd "$DIR/data" && "${words[@]}" org.apache.rocketmq.tools.command.MQAdminStartup "$@")
}
