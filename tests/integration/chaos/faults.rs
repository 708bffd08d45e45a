//! What goes wrong, for how long, and that it ends.

use std::time::{Duration, Instant};

use mailgate_types::lease::LEASE;
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};

use super::clock::Clock;
use super::cluster::{Cluster, TTL};
use super::line::{Line, State, some_delay};
use crate::replicas::fleet::{Fleet, HOSTS};

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    GatewayKilled,
    GatewayStopped,
    SlowNetwork,
    LossyNetwork,
    Partition,
    AnswersLost,
    DiskFull,
    ClockStep,
    Failover,
    Switchover,
    StandbyLost,
    ProviderRefuses,
    ProviderSilent,
    ProviderSlow,
    WrongClock,
    WrongDatabaseClock,
    CommitsHeld,
    ReadOnly,
    Dump,
}

use Fault::{
    AnswersLost, ClockStep, CommitsHeld, DiskFull, Dump, Failover, GatewayKilled, GatewayStopped,
    LossyNetwork, Partition, ProviderRefuses, ProviderSilent, ProviderSlow, ReadOnly, SlowNetwork,
    StandbyLost, Switchover, WrongClock, WrongDatabaseClock,
};

/// How far a clock is off at most, in seconds.
const CLOCK_STEP: i32 = 90;

/// How far one is off that nobody sets: 3 hours, 26 hours, 100 days, and 26 hours behind.
const WRONG: [i32; 4] = [3 * 3_600, 26 * 3_600, 100 * 86_400, -26 * 3_600];

const ALL: [Fault; 19] = [
    GatewayKilled,
    GatewayStopped,
    SlowNetwork,
    LossyNetwork,
    Partition,
    AnswersLost,
    DiskFull,
    ClockStep,
    Failover,
    Switchover,
    StandbyLost,
    ProviderRefuses,
    ProviderSilent,
    ProviderSlow,
    WrongClock,
    WrongDatabaseClock,
    CommitsHeld,
    ReadOnly,
    Dump,
];

/// What faults are made of.
pub struct Scene {
    pub cluster: Cluster,
    pub fleet: Fleet,
    /// From each gateway to the database, and from all of them to the provider.
    pub database_lines: Vec<Line>,
    pub provider_line: Line,
    /// Each gateway's; empty without libfaketime.
    pub clocks: Vec<Clock>,
}

impl Scene {
    /// All kinds that are possible here, in any order.
    pub fn deck(&self, random: &mut StdRng) -> Vec<Fault> {
        let mut deck: Vec<Fault> = (ALL.into_iter())
            .filter(|fault| match fault {
                DiskFull => self.cluster.has_disks(),
                ClockStep | WrongClock | WrongDatabaseClock => !self.clocks.is_empty(),
                _ => true,
            })
            .collect();
        deck.shuffle(random);
        deck
    }

    /// Lets it happen; answers when it ended.
    pub async fn inflict(&mut self, fault: Fault, random: &mut StdRng) -> Instant {
        let number = random.random_range(0..HOSTS.len());
        let mut seconds =
            |range: std::ops::Range<f64>| Duration::from_secs_f64(random.random_range(range));
        match fault {
            GatewayKilled => {
                let pause = seconds(0.0..3.0);
                self.fleet.replicas[number].kill().await;
                tokio::time::sleep(pause).await;
                self.fleet.replicas[number].restart().await;
            }
            GatewayStopped => {
                let pause = LEASE.mul_f64(seconds(0.5..2.0).as_secs_f64());
                self.fleet.replicas[number].signal("STOP").await;
                tokio::time::sleep(pause).await;
                self.fleet.replicas[number].signal("CONT").await;
            }
            SlowNetwork => {
                let pause = seconds(5.0..10.0);
                let state = some_delay(random);
                self.network(state, pause).await;
            }
            LossyNetwork => {
                let pause = seconds(5.0..10.0);
                self.network(State::Lossy(0.05), pause).await;
            }
            Partition => {
                let line = &self.database_lines[number];
                line.set(State::Silent);
                tokio::time::sleep(seconds(5.0..25.0)).await;
                line.set(State::Cut);
                line.set(State::Open);
            }
            AnswersLost => {
                let pause = seconds(0.001..0.06);
                self.set_database(State::Deaf);
                tokio::time::sleep(pause).await;
                self.set_database(State::Cut);
                self.set_database(State::Open);
            }
            ClockStep => {
                let step = random.random_range(-CLOCK_STEP..CLOCK_STEP);
                self.clocks[number].set(step);
                tokio::time::sleep(Duration::from_secs(10)).await;
                self.clocks[number].set(0);
            }
            ProviderRefuses => {
                self.provider_line.set(State::Cut);
                tokio::time::sleep(seconds(3.0..10.0)).await;
                self.provider_line.set(State::Open);
            }
            ProviderSilent => {
                self.provider_line.set(State::Silent);
                tokio::time::sleep(seconds(3.0..10.0)).await;
                self.provider_line.set(State::Cut);
                self.provider_line.set(State::Open);
            }
            ProviderSlow => {
                // Slower than a lease, and its gateway may die meanwhile.
                let delay = LEASE.mul_f64(seconds(1.0..1.6).as_secs_f64());
                let (killed, pause) = (seconds(0.0..1.0).as_secs_f64() < 0.5, seconds(2.0..4.0));
                self.provider_line.set(State::SlowMessages(delay));
                tokio::time::sleep(pause).await;
                if killed {
                    self.fleet.replicas[number].kill().await;
                    self.fleet.replicas[number].restart().await;
                }
                tokio::time::sleep(Duration::from_secs(10)).await;
                self.provider_line.set(State::Open);
            }
            WrongClock => {
                self.clocks[number].set(*WRONG.choose(random).unwrap());
                tokio::time::sleep(Duration::from_secs(15)).await;
                self.clocks[number].set(0);
            }
            _ => self.inflict_on_database(fault, random).await,
        }
        Instant::now()
    }

    /// As [`Scene::inflict`], for what goes wrong with the database alone.
    async fn inflict_on_database(&self, fault: Fault, random: &mut StdRng) {
        let mut seconds =
            |range: std::ops::Range<f64>| Duration::from_secs_f64(random.random_range(range));
        let primary = self.cluster.primary().await.expect("there is a primary");
        match fault {
            DiskFull => {
                self.cluster.fill_disk(primary);
                tokio::time::sleep(seconds(5.0..10.0)).await;
                self.cluster.free_disk(primary);
            }
            Failover => {
                self.cluster.kill(primary).await;
                // Before, it would become the primary again.
                tokio::time::sleep(TTL + Duration::from_secs(5)).await;
                self.cluster.start_node(primary);
            }
            WrongDatabaseClock => {
                let pause = seconds(2.0..20.0);
                // It was right when its Postgres began, which is what Patroni knows it by.
                self.cluster
                    .set_clock(1 - primary, *WRONG.choose(random).unwrap());
                tokio::time::sleep(Duration::from_secs(2)).await;
                self.cluster.kill(primary).await;
                tokio::time::sleep(TTL + Duration::from_secs(5)).await;
                self.cluster.start_node(primary);
                tokio::time::sleep(pause).await;
                self.cluster.set_clock(1 - primary, 0);
            }
            StandbyLost => {
                self.cluster.kill(1 - primary).await;
                tokio::time::sleep(seconds(1.0..5.0)).await;
                self.cluster.start_node(1 - primary);
            }
            CommitsHeld => {
                let pause = seconds(5.0..22.0);
                let standby = 1 - primary;
                self.cluster.pause(standby, true).await;
                tokio::time::sleep(pause).await;
                self.cluster.pause(standby, false).await;
            }
            ReadOnly => {
                self.cluster.set_read_only(primary, true).await;
                tokio::time::sleep(seconds(5.0..15.0)).await;
                self.cluster.set_read_only(primary, false).await;
            }
            Dump => {
                let pause = seconds(10.0..25.0);
                self.cluster.dump(pause).await;
            }
            Switchover => self.cluster.switch_over().await,
            _ => unreachable!("{fault:?} is none of the database"),
        }
    }

    async fn network(&self, state: State, pause: Duration) {
        self.set_database(state);
        self.provider_line.set(state);
        tokio::time::sleep(pause).await;
        self.set_database(State::Open);
        self.provider_line.set(State::Open);
    }

    fn set_database(&self, state: State) {
        for line in &self.database_lines {
            line.set(state);
        }
    }
}

impl Fault {
    pub fn name(self) -> &'static str {
        match self {
            GatewayKilled => "a gateway killed",
            GatewayStopped => "a gateway stopped (half a lease to two)",
            SlowNetwork => "slow network (20 to 150 ms each way)",
            LossyNetwork => "lossy network (5 %)",
            Partition => "a gateway cut off from the database",
            AnswersLost => "answers of the database lost",
            DiskFull => "disk of the primary full",
            ClockStep => "a gateway's clock off by up to 90 s",
            Failover => "primary killed (failover)",
            Switchover => "switchover",
            StandbyLost => "standby killed",
            ProviderRefuses => "provider refuses connections",
            ProviderSilent => "provider silent",
            ProviderSlow => "provider slower than a lease",
            WrongClock => "a gateway's clock wrong (+3 h, +26 h, +100 d, -26 h)",
            WrongDatabaseClock => "failover to a clock that is wrong, as above",
            CommitsHeld => "commits held back by a standby that hangs",
            ReadOnly => "database read-only",
            Dump => "a dump in progress",
        }
    }
}
